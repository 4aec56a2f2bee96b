"""``sbench scale``."""

from typing import Any, Final

import click

from serverless_bench.base.units import format_rate
from serverless_bench.cli.flags.options import FOLDER, choose_format, option
from serverless_bench.cli.output.terminal import ExitCode, say, sections
from serverless_bench.features.ab.command import resume_option, series_options, series_root
from serverless_bench.features.answers.showing import keep
from serverless_bench.features.compare.task import (
    COMMANDS,
    OWN_FLAGS,
    flags_of_job,
    job_parameters,
    listener,
    prepare_task,
)
from serverless_bench.job.meaning import read_numbers

_DECIDED: Final = OWN_FLAGS | {"number", "concurrency", "seed"}
"""Parameters of write and read that this command sets."""


@sections({"Series": "numbers repeats predict resume"})
@click.command("scale")
@click.argument("job", type=click.Choice(sorted(COMMANDS, reverse=True)), default="write")
@option("--numbers", default="1,10,30,100,300", help="Numbers of concurrent functions.")
@option("--repeats", type=int, default=3, help="Runs per number.")
@option("--predict", type=int, help="Predict the throughput of this number of functions.")
@option(
    "--from",
    type=FOLDER,
    help="Fit the runs in this directory instead of making new runs.",
)
@series_options
@resume_option
@choose_format("text", "json", "markdown", "html")
@click.pass_context
def command(
    context: click.Context,
    /,
    job: str,
    numbers: str,
    repeats: int,
    predict: int | None,
    **flags: Any,
) -> int:
    """Run a write or a read with more and more concurrent functions, and fit two laws.

    The order of runs is random, with all numbers in each repeat. The remaining flags are those
    of the job. See "Scaling" in the documentation for the laws.
    """
    levels, task, root = read_numbers("numbers", numbers), None, flags["from"]
    if not root:
        own = flags_of_job(context, COMMANDS, job, flags, _DECIDED)
        task = prepare_task(job, own | {"seed": flags["seed"], "concurrency": 1})
    # Import the libraries of the series only after the flags are checked.
    from serverless_bench.features.scale.fits import drawings, headline, lines, show
    from serverless_bench.features.scale.measure import scale

    made = root or series_root("scale", flags["name"], flags["run_dir"], flags["resume"])
    fitted = scale(
        task,
        made,
        numbers=levels,
        repeats=repeats,
        seed=flags["seed"],
        keep=flags["keep"],
        resume=flags["resume"] is not None,
        on_run=lambda turn, run: say(
            f"{turn}, {format_rate(run.summary.throughput_bytes_per_s)}  {run.path}",
            err=flags["format"] != "text",
        ),
        listener=listener(),
    )
    if not root:
        keep(
            made,
            lambda style, _: lines(fitted, predict, style),
            command="scale",
            headline=headline(fitted),
            document=fitted.to_json(predict),
            drawings=drawings(fitted),
        )
    show(fitted, predict=predict, style=flags["format"])
    return ExitCode.OK if fitted.complete else ExitCode.INCOMPLETE


command.params.extend(job_parameters(COMMANDS, _DECIDED))
