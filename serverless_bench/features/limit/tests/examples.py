"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.limit.result import Limit
from tests.house.examples import SHORT, SMALLER, Command

COMMANDS: Final = {
    "limit": Command(
        ("write",),
        2,
        [("write", *SMALLER, "--over", "threads", "--p99", "1s", *SHORT)],
        codes=(0, 10, 14, 15),
    ),
}
ANSWERS: Final = {"limit": Limit}
SECTIONS: Final = {
    "LevelRow": "level",
    "Limit": "limit",
    "Objective": "objective",
}
