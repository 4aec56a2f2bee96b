"""``sbench why``."""

from typing import Any, Final

import click

from serverless_bench.cli.commands.ab import series_options
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.flags.options import DURATION, choose_format, new_name, option
from serverless_bench.cli.output.terminal import say, show, width
from serverless_bench.cli.task import (
    OWN_FLAGS,
    commands_where,
    flags_of_job,
    job_parameters,
    listener,
    prepare_task,
    workload_of_command,
)
from serverless_bench.errors import UsageError

_JOBS: Final = commands_where(lambda workload: workload.runs_code or "rate" in workload.settings)
"""Commands of jobs that can continue for a duration."""
_DECIDED: Final = OWN_FLAGS - {"from", "trust"} | {
    *("code", "rate", "arrivals", "duration", "operations", "seed", "until_stable")
}
"""Parameters of the jobs that this command sets."""


@click.command("why")
@click.argument("job", type=click.Choice(sorted(_JOBS)))
@click.argument("code", required=False, metavar="[FILE.py:FUNCTION]")
@option("--budget", type=DURATION, default="60s", help="Duration of all blocks together.")
@option(
    "--block",
    type=DURATION,
    help="Length of a block.  [default: as short as the requests allow]",
)
@series_options
@choose_format("text", "json", "markdown")
@click.pass_context
def command(
    context: click.Context,
    /,
    job: str,
    code: str | None,
    budget: float,
    block: float | None,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Find out what bounds a job by changes in short blocks of time.

    A short run without changes shows how long requests take. Then all functions change the same
    thing in the same short blocks: more threads, a tax on the processor, half of the functions
    idle, half of the bytes. The remaining flags are those of the job. See docs/why.md.
    """
    style = flags["format"]
    own = flags_of_job(context, _JOBS, job, flags, _DECIDED)
    takes_code = any(parameter.name == "code" for parameter in _JOBS[job].params)
    if takes_code != (code is not None):
        number = "a" if takes_code else "no"
        raise UsageError(f"{job} takes {number} FILE.py:FUNCTION", hint=f"sbench {job} --help")
    fixed = {"seed": flags["seed"], "duration": 1.0, "rate": None, "operations": None}
    task = prepare_task(workload_of_command(job), {**own, **fixed, "code": code})
    # Import the libraries of the series only after the flags are checked.
    from serverless_bench.series.why.measure import why
    from serverless_bench.series.why.result import lines

    answer = why(
        task,
        flags["run_dir"] / new_name("why", flags["name"]),
        budget_s=budget,
        block_s=block,
        seed=flags["seed"],
        keep=flags["keep"],
        on_plan=lambda text: say(text, err=style != "text"),
        listener=listener(),
    )
    show(style, answer.to_json(), lines(answer, style, width()))
    return ExitCode.OK if answer.cause.names else ExitCode.UNDECIDED


command.params.extend(job_parameters(_JOBS, _DECIDED))
