"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "compare": Command(("run", "run", "--metric", "no_such"), 2, [("a", "b")], codes=(0, 9, 10)),
}
