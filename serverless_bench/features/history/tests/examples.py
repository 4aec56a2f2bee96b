"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "history": Command(
        ("ls",),
        8,
        [
            ("add", "recorded", "--history", "sbench-runs/history"),
            ("ls", "--history", "sbench-runs/history"),
            ("check", "recorded", "--history", "sbench-runs/history"),
        ],
        codes=(0, 10),
    ),
}
