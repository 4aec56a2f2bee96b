"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "ab": Command(
        ("a.toml", "b.toml"),
        2,
        [("OWN/task.toml", "OWN/task.toml", "--blocks", "6", "--warm-up-blocks", "0")],
        codes=(0, 9, 10),
    ),
}
