"""``sbench check``."""

import json
from pathlib import Path

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.options import FILE, choose_format, option
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.output.terminal import ExitCode, note, say, say_json


@click.command("check")
@run_argument
@choose_format("text", "json")
@option(
    "--request-log",
    type=FILE,
    help="Log of the store (sbench serve --request-log): list all differences from the run.",
)
@option("--cleaned", is_flag=True, help="With --request-log: no object of the run may remain.")
def command(directory: Path, request_log: Path | None, *, cleaned: bool, **flags: str) -> int:
    """Check that the results of a run are possible and repeatable.

    RUN is the name or the directory of a run; the default is the latest run. With a request log,
    also compare the run with the log of the store.
    """
    from serverless_bench.features.check.checked_run import check
    from serverless_bench.rundir.run import load_run

    if cleaned and request_log is None:
        raise UsageError(
            "--cleaned needs --request-log", hint="add --request-log FILE from sbench serve"
        )
    run = load_run(directory)
    note(run.problems)
    result = check(run, request_log=request_log, cleaned=cleaned)
    if flags["format"] == "json":
        say_json(json.dumps(result.to_json()))
    else:
        from serverless_bench.report.base import headline

        say(f"{result.summary.workload}: {headline(result.summary)}")
        colors = {"bad": "red", "warning": "yellow"}
        for text, style in result.lines():
            say(text, fg=colors.get(style))
    code = result.summary.exit_code(result.contradictions)
    wrong = result.violated_keys or (result.audit is not None and result.audit.differences)
    return ExitCode.WITHHELD if wrong and code != ExitCode.CORRUPT else code
