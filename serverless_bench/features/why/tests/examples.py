"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from tests.house.examples import FEW, SMALLER, Command

COMMANDS: Final = {
    "why": Command(
        ("write", "--number", "1", "--size", "1KiB"),
        2,
        [("write", *SMALLER, "--number", "2", "--budget", "1s")],
        codes=(2,),
    ),
}
SEEDS: Final[dict[str, dict[str, Any]]] = {
    "why": {"workload": "write", **FEW, "duration": 1.0},
}
