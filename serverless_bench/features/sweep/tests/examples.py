"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

_SMALL: Final = ("--bucket", "mine", "--size", "4KiB", "--in-flight", "1", "--budget", "6s")
COMMANDS: Final = {
    "sweep": Command(("--in-flight", "1,0"), 2, [("write", *_SMALL)]),
}
