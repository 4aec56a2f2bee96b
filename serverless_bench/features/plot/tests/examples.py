"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "plot": Command(("run", "--output", "run.svg"), 0, [("recorded",)]),
}
