"""``sbench why``."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.options import (
    DURATION,
    choose_format,
    option,
    trust_option,
)
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.output.terminal import ExitCode, aside, say, sections
from serverless_bench.features.ab.command import resume_option, series_options, series_root
from serverless_bench.features.answers.showing import keep_and_show
from serverless_bench.features.compare.task import (
    OWN_FLAGS,
    commands_where,
    flags_of_job,
    in_one_batch,
    job_parameters,
    listener,
    prepare_task,
    task_in_one_batch,
)
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.settings import setting_names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from serverless_bench.driver.task import Task

_JOBS: Final = commands_where(
    lambda workload: isinstance(workload, RunsCode) or "rate" in workload.settings
)
"""Commands of jobs that can continue for a duration."""
_DECIDED: Final = OWN_FLAGS - {"from"} | {
    *("code", "rate", "arrivals", "duration", "operations", "seed", "until_stable")
}
"""Parameters of the jobs that this command sets."""


class _JobOrRun(RunName):
    """Command of a job, or a run."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the commands and the runs with this prefix."""
        jobs = click.Choice(sorted(_JOBS)).shell_complete(ctx, param, incomplete)
        return [*jobs, *super().shell_complete(ctx, param, incomplete)]


@sections({"Objective": "budget block", "Series": "resume"})
@click.command("why")
@click.argument("job", type=_JobOrRun(), metavar=f"{{{'|'.join(sorted(_JOBS))}|RUN}}")
@click.argument("code", required=False, metavar="[FILE.py:FUNCTION]")
@option("--budget", type=DURATION, default="60s", help="Duration of all blocks together.")
@option(
    "--block",
    type=DURATION,
    help="Length of a block.  [default: as short as the requests allow]",
)
@series_options
@resume_option
@trust_option
@choose_format("text", "json", "markdown")
@click.pass_context
def command(
    context: click.Context,
    /,
    job: str,
    code: str | None,
    budget: float,
    block: float | None,
    **flags: Any,
) -> int:
    """Find the bottleneck of a job by changes in short blocks of time.

    A short run without changes shows how long requests take. Then all functions change the same
    thing in the same short blocks: more threads, a tax on the CPU, half of the functions
    idle, half of the bytes. See "Proof of the bottleneck"
    in the documentation.

    RUN is the name or the directory of a run. Its job is repeated, with as many functions as ran
    at the same time. Without it, the remaining flags are those of the job.
    """
    style = flags["format"]
    task = (_task if job in _JOBS else _task_of_run)(context, job, code, flags)
    # Import the libraries of the series only after the flags are checked.
    from serverless_bench.features.why.measure import why
    from serverless_bench.features.why.result import drawings, lines

    root = series_root("why", flags["name"], flags["run_dir"], flags["resume"])
    found = why(
        task,
        root,
        budget_s=budget,
        block_s=block,
        seed=flags["seed"],
        keep=flags["keep"],
        resume=flags["resume"] is not None,
        on_plan=lambda text: say(text, err=style != "text"),
        listener=listener(),
    )
    keep_and_show(
        root,
        style,
        partial(lines, found),
        command="why",
        headline=", ".join(map(str, found.cause.names)) or "undecided",
        document=found.to_json(),
        drawings=drawings(found),
    )
    return ExitCode.OK if found.cause.names else ExitCode.UNDECIDED


command.params.extend(job_parameters(_JOBS, _DECIDED))


def _task(context: click.Context, job: str, code: str | None, flags: Mapping[str, Any]) -> "Task":
    """Return the task of a command with flags."""
    own = flags_of_job(context, _JOBS, job, flags, _DECIDED)
    takes_code = any(parameter.name == "code" for parameter in _JOBS[job].params)
    if takes_code != (code is not None):
        number = "a" if takes_code else "no"
        raise UsageError(f"{job} takes {number} FILE.py:FUNCTION", hint=f"sbench {job} --help")
    fixed = {"seed": flags["seed"], "duration": 1.0, "rate": None, "operations": None}
    return task_in_one_batch(context, prepare_task(job, {**own, **fixed, "code": code}))


def _task_of_run(
    context: click.Context, run: str, code: str | None, flags: Mapping[str, Any]
) -> "Task":
    """Return the task that repeats the job of a run."""
    del code
    own = {*setting_names(), "from"} - {"name", "seed"}
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in own and source is click.core.ParameterSource.COMMANDLINE:
            what = parameter.opts[0]
            raise UsageError(f"{what} is not for a run: its job is repeated", hint="leave it out")
    directory = the_run(run, flags["run_dir"])
    from serverless_bench.driver.origin import confirm
    from serverless_bench.driver.plan import check_saved
    from serverless_bench.driver.target import located
    from serverless_bench.driver.task import Task
    from serverless_bench.features.cost.limit import cost_limit
    from serverless_bench.rundir.run import load_run

    saved = load_run(directory, detail=False)
    aside(*filter(None, [confirm(saved, trust=flags["trust"])]))
    job, created, keys = check_saved(saved), {*saved.ledger()}, saved.keys()
    if isinstance(job.declared, RunsCode) or "rate" not in job.declared.settings:
        raise UsageError(
            f"the job of {directory}, {job.workload}, cannot continue for a duration, or its code"
            " is not saved",
            hint="sbench why --help lists the jobs",
        )
    return Task(
        job=in_one_batch(job).with_options(interventions=None),
        keys=[key for key in keys if key not in created],
        place=located,
        cost=cost_limit(job.executor, max_cost=flags["max_cost"], prices=flags["prices"]),
        progress=flags["progress"],
    )
