"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.cost.bill import Bill
from tests.house.examples import Command

COMMANDS: Final = {
    "plan": Command(
        ("--format", "json", "write", "--number", "20"),
        0,
        [("write", "--number", "2"), ("--simulate", "write", "--number", "1")],
    ),
}
PARTS: Final = {"bill": Bill}
SECTIONS: Final = {
    "Bill": "bill",
    "Dollars": "dollars",
}
