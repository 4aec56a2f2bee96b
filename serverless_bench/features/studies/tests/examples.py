"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from tests.house.examples import Command

COMMANDS: Final = {
    "study": Command(
        ("ls",),
        0,
        [
            ("ls",),
            ("show", "s3-client-threads"),
            ("run", "s3-client-threads", "--bucket", "mine", "--dry-run"),
        ],
    ),
}
