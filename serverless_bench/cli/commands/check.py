"""``sbench check``."""

import json
from pathlib import Path

import click

from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.flags.options import FILE, choose_format, harmless, option
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.numerics import load_numpy
from serverless_bench.cli.output.terminal import note, say, say_json
from serverless_bench.errors import UsageError


@click.command("check")
@run_argument
@choose_format("text", "json")
@option(
    "--witness",
    type=FILE,
    help="What the store saw (sbench serve --witness): name every difference.",
)
@harmless("--cleaned", is_flag=True, help="With --witness: nothing of the run may be left.")
def command(directory: Path, witness: Path | None, *, cleaned: bool, **flags: str) -> int:
    """Check that a run's figures are possible, and say what makes them hard to repeat.

    RUN is a run's name or its directory; the latest run without it. With a witness, also hold
    the run against what the store saw of it.
    """
    load_numpy()
    from serverless_bench.driver.check import check
    from serverless_bench.rundir.run import load_run

    if cleaned and witness is None:
        raise UsageError("--cleaned needs --witness", hint="name what sbench serve --witness wrote")
    run = load_run(directory)
    note(run.problems)
    found = check(run, witness=witness, cleaned=cleaned)
    if flags["format"] == "json":
        say_json(json.dumps(found.to_json()))
    else:
        from serverless_bench.reporters.base import headline

        say(f"{found.summary.workload}: {headline(found.summary)}")
        colors = {"bad": "red", "warning": "yellow"}
        for text, style in found.lines():
            say(text, fg=colors.get(style))
    code = found.summary.exit_code(found.contradictions)
    wrong = found.violated_keys or (found.audit is not None and found.audit.differences)
    return ExitCode.WITHHELD if wrong and code != ExitCode.CORRUPT else code
