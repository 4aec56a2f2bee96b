"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

SEEDS: Final[dict[str, dict[str, Any]]] = {
    "noop": {"workload": "noop", "number": 2},
}
