"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "doctor": Command(("--run-duration", "many"), 2, [("--no-probe",)]),
}
