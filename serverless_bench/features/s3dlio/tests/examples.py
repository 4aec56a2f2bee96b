"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from tests.house.examples import FEW

SEEDS: Final[dict[str, dict[str, Any]]] = {
    "write-s3dlio": {"workload": "write", **FEW},
}
