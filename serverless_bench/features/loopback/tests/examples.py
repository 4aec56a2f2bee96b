"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "serve": Command(("--flip", "1.5"), 2, [()]),
}
