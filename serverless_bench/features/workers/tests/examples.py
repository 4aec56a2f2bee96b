"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "worker": Command(
        ("--control", "nowhere/"), 2, [("--control", "s3://mine/control/", "--idle", "0.1")]
    ),
}
