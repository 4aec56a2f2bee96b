"""``sbench limit``."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import format_per_s, format_seconds, parse_share
from serverless_bench.cli.flags.options import (
    DURATION,
    Parsed,
    choose_format,
    group,
    option,
)
from serverless_bench.cli.output.terminal import ExitCode, say, sections
from serverless_bench.features.ab.command import resume_option, series_options, series_root
from serverless_bench.features.answers.showing import keep_and_show
from serverless_bench.features.compare.task import (
    COMMANDS,
    OWN_FLAGS,
    commands_where,
    flags_of_job,
    job_parameters,
    listener,
    prepare_task,
    task_in_one_batch,
)

if TYPE_CHECKING:
    from serverless_bench.driver.task import Task
    from serverless_bench.features.limit.block import Block, Objective

_JOBS: Final = COMMANDS | commands_where(lambda workload: "rate" in workload.settings)
"""Commands that transfer objects, and commands whose operations can have a rate."""
_DECIDED: Final = OWN_FLAGS - {"from", "trust"} | {
    "rate",
    "duration",
    "operations",
    "seed",
    "until_stable",
}
"""Parameters of the jobs that this command sets."""
_SHARE: Final = Parsed("share", partial(parse_share, below=0.5))
_CODES: Final = {
    "precision": ExitCode.OK,
    "budget": ExitCode.UNDECIDED,
    "lowest": ExitCode.NEVER_HELD,
    "none": ExitCode.NEVER_HELD,
    "undecided": ExitCode.UNDECIDED,
    "highest": ExitCode.NO_LIMIT,
}

_search_options = group(
    option("--p99", type=DURATION, help="Time limit of 99 in 100 operations, as in 50ms."),
    option("--errors", type=_SHARE, help="Operations that may fail or not start: 0.1%."),
    option(
        "--over",
        type=click.Choice(("rate", "number", "connections", "threads")),
        default="rate",
        help="Quantity to raise: operations per second in an open loop, functions, connections"
        " or threads.",
    ),
    option("--lowest", type=click.IntRange(1), help="First level.  [default: 10 of rate, else 1]"),
    option(
        "--highest",
        type=click.IntRange(1),
        help="Last level.  [default: 100000 of rate, 1000 functions, else 256]",
    ),
    option(
        "--precision",
        type=_SHARE,
        default="5%",
        help="Half width of the interval at which to stop.",
    ),
    option("--budget", type=DURATION, default="10min", help="Time limit for all blocks."),
    option("--block", type=DURATION, default="5s", help="Length of one run."),
)


@sections(
    {"Objective": "p99 errors over lowest highest precision budget block", "Series": "resume"}
)
@click.command("limit")
@click.argument("job", type=click.Choice(sorted(_JOBS)))
@_search_options
@series_options
@resume_option
@choose_format("text", "json", "markdown")
@click.pass_context
def command(
    context: click.Context,
    /,
    job: str,
    over: str,
    **flags: Any,
) -> int:
    """Find the highest rate, or number of functions, that meets an objective.

    Double the level until the objective fails. Then make rounds of short runs at levels around
    the limit, in random order, until its interval is narrow enough or the budget is spent. The
    remaining flags are those of the job. See "Limit" in the documentation
    for the guarantee of the interval.
    """
    style, task = flags["format"], _task(context, job, over, flags)
    # Import the libraries of the search only after the flags are checked.
    from serverless_bench.features.limit.measure import limit
    from serverless_bench.features.limit.result import drawings, headline, lines

    root = series_root("limit", flags["name"], flags["run_dir"], flags["resume"])
    result = limit(
        task,
        root,
        p99_s=flags["p99"],
        errors=flags["errors"],
        over=over,
        precision=flags["precision"],
        budget_s=flags["budget"],
        block_s=flags["block"],
        lowest=flags["lowest"],
        highest=flags["highest"],
        seed=flags["seed"],
        keep=flags["keep"],
        resume=flags["resume"] is not None,
        on_block=lambda block, objective: say(
            f"{over} {_line(block, objective)}", err=style != "text"
        ),
        listener=listener(),
    )
    keep_and_show(
        root,
        style,
        partial(lines, result),
        command="limit",
        headline=headline(result),
        document=result.to_json(),
        drawings=drawings(result),
    )
    return _CODES[result.ended]


def _line(block: "Block", objective: "Objective") -> str:
    bad_shares = ", ".join(
        f"{name} {count / max(block.due, 1):.2%}" for name, count in block.bad(objective).items()
    )
    slow = "" if not len(block.took_s) else f", slowest {format_seconds(block.took_s[-1])}"
    slow += ", queue grows" if block.grows(objective) else ""
    rate = format_per_s(block.achieved_per_s)
    return f"{block.level}: {rate}{slow}; beyond {bad_shares}  {block.path}"


command.params.extend(job_parameters(_JOBS, _DECIDED))


def _task(context: click.Context, job: str, over: str, flags: dict[str, Any]) -> "Task":
    decided = ("number", "concurrency") if over == "number" else (over,)
    for name in decided:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"--over {over} sets --{name}", hint=f"leave --{name} out")
    own = flags_of_job(context, _JOBS, job, flags, _DECIDED)
    level = dict.fromkeys(decided, flags["lowest"] or 1)
    fixed = {"seed": flags["seed"], "duration": flags["block"], "rate": None, "operations": None}
    return task_in_one_batch(context, prepare_task(job, {**own, **fixed, **level}))
