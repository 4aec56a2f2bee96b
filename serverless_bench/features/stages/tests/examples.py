"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "run": Command(("nothing.toml", "--dry-run"), 2, [("OWN/job.toml",)]),
}
