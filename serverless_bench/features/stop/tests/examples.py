"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "stop": Command(("nowhere",), 8, [("recorded",)]),
}
