"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "demo": Command(("--mb", "0"), 2, [(*HOW, "--mb", "1")]),
}
