"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from serverless_bench.features.conditional.part import Contention
from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "conditional": Command(("--pattern", "none"), 2, [(*HOW, "--operations", "2")]),
}
LOADS: Final[dict[str, dict[str, Any]]] = {
    "conditional": {"pattern": "claim", "backoff": 0.5},
}
PARTS: Final = {"contention": Contention}
SECTIONS: Final = {
    "Contention": "contention",
}
