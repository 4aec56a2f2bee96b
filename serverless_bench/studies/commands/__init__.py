"""Help line and module of the commands for studies."""

from typing import Final

COMMANDS: Final = {
    "exp": (
        "Repeat a published study, and show measured next to published values.",
        "serverless_bench.studies.commands.exp:command",
    ),
}
