"""``sbench sweep``."""

from pathlib import Path
from typing import Any, Final

import click

from serverless_bench.base.errors import UsageError, check_known
from serverless_bench.base.process import cpus
from serverless_bench.cli.flags.options import (
    DURATION,
    choose_format,
    option,
    trust_option,
)
from serverless_bench.cli.output.terminal import ExitCode, sections
from serverless_bench.features.ab.command import series_options, series_root
from serverless_bench.features.answers.showing import keep_and_show
from serverless_bench.features.studies.commands.study_plan import (
    cost_option,
    perform,
    settings_of,
    value_of,
    values_of,
    where_options,
)
from serverless_bench.job.meaning import read_numbers
from serverless_bench.job.target import parse_bucket

_DECIDED: Final = frozenset({"workload", "size", "number", "concurrency", "duration", "objects"})
"""Settings that the other flags of the command set."""


@sections({"Series": "size in-flight axis set budget resume"})
@click.command("sweep")
@click.argument("jobs", default="write,read", metavar="JOB[,JOB]")
@option("--size", default="4KiB,256KiB,4MiB", help="Sizes of objects.")
@option(
    "--in-flight",
    default="1,4,16,64",
    help="Operations in flight, of all functions together.",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="AXIS=VALUE[,...]",
    help="Further setting to vary, such as client=wire,boto3.",
)
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Setting of all combinations."
)
@option(
    "--budget",
    type=DURATION,
    default="3m",
    help="Time for the whole sweep: a pilot and three runs of each combination, or more.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Resume the sweep with this name, or in this directory.",
)
@trust_option
@series_options
@where_options
@cost_option
@choose_format("text", "json", "markdown")
def command(
    jobs: str,
    size: str,
    in_flight: str,
    axes: tuple[str, ...],
    budget: float,
    resume: Path | None,
    *,
    trust: bool,
    **flags: Any,
) -> int:
    """Measure writes and reads with each combination of size and operations in flight.

    JOB is write, read or both. Each combination runs in short rounds in random order, and the
    objects are deleted afterwards. The table has rates, latencies, errors and the bottleneck of
    each, and the number of operations in flight beyond which more bring no gain.
    """
    from serverless_bench.features.studies.loading import parse
    from serverless_bench.features.studies.observations import observe
    from serverless_bench.features.studies.plan import Plan, load_plan
    from serverless_bench.features.studies.settings import check_cell
    from serverless_bench.features.sweep.design import JOBS, SOURCE, Sweep
    from serverless_bench.features.sweep.result import sweep_result

    root = series_root("sweep", flags["name"], flags["run_dir"], resume)
    if resume is not None:
        plan = load_plan(root, to_run=True, trust=trust)
        if plan.study.seed.source != SOURCE:
            raise UsageError(f"{root} is no sweep", hint=f"sbench study run --resume {root}")
    else:
        named = jobs.split(",")
        check_known(named, JOBS, "sweep runs no job")
        settings, texts = settings_of(flags), values_of("--axis", axes)
        # Threads divide the operations in flight, so that one number of them is for all.
        if decided := sorted({*settings, *texts} & _DECIDED | {*texts} & {"threads"}):
            raise UsageError(f"sweep sets {decided[0]} itself", hint="sbench sweep --help")
        sweep = Sweep(
            jobs=named,
            sizes=size.split(","),
            in_flight=read_numbers("in_flight", in_flight),
            axes={name: [*map(value_of, values)] for name, values in texts.items()},
            settings=settings,
            cpus=cpus(),
            budget_s=budget,
        )
        plan = Plan(
            study=parse(sweep.text(), "sweep"),
            scale="small",
            repeats=1,
            minutes=budget / 60,
            seed=flags["seed"],
            protocol=parse_bucket(flags["bucket"] or "")[0],
        )
        for cell in plan.cells():
            # A study shows a library that is missing as a row; here the user named it.
            check_cell(cell.settings)
    plan = perform(plan, root, flags, resumed=resume is not None, again="sbench sweep --resume")
    found = sweep_result(observe(root, plan.cells(), repeats=plan.repeats, min_bytes=1))
    keep_and_show(
        root,
        flags["format"],
        lambda style, _: found.lines(style),
        command="sweep",
        headline=found.headline,
        document=found.to_json(),
        drawings=found.drawings(),
    )
    return ExitCode.OK if found.complete else ExitCode.INCOMPLETE
