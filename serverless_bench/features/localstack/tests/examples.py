"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "localstack": Command(("--port", "none"), 2, [()], codes=(5,)),
}
