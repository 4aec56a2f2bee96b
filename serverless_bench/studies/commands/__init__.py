"""Commands of the studies: the help line and the place of each."""

from typing import Final

COMMANDS: Final = {
    "exp": (
        "Run a published study again, and show measured next to published.",
        "serverless_bench.studies.commands.exp:command",
    ),
}
