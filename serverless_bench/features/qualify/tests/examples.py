"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "qualify": Command(
        ("--functions", "1"), 2, [("mine", "--for", "ranges,clock", "--budget", "10s")]
    ),
}
