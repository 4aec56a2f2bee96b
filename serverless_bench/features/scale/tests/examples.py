"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import SMALLER, Command

COMMANDS: Final = {
    "scale": Command(
        ("--numbers", "1,2"), 2, [("write", *SMALLER, "--numbers", "1,2,3", "--repeats", "1")]
    ),
}
SECTIONS: Final = {
    "LawKnee": "knee",
}
