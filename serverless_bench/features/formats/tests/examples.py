"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "convert": Command(
        ("sai3", "nothing.yaml"), 2, [("OWN/theirs.yml", "--output", "sbench-runs/theirs.toml")]
    ),
    "import": Command(("nothing.pickle",), 2, [("OWN/theirs.csv",)]),
    "export": Command(
        ("run", "--format", "csv"),
        0,
        [("recorded", "--format", "csv", "--output", "sbench-runs/recorded.csv")],
    ),
}
