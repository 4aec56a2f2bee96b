"""``sbench aws``: what an AWS account needs for sbench's functions."""

from pathlib import Path
from typing import Any

import click

from serverless_bench.base.units import NS_PER_S
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import (
    DURATION,
    FILE,
    FOLDER,
    choose_format,
    keep_option,
    new_name,
    option,
    prices_option,
    run_dir_option,
)
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.output.terminal import (
    ExitCode,
    Group,
    aside,
    confirmed,
    say,
    show,
    working,
)
from serverless_bench.features.aws.options import FunctionOptions, region_of_functions
from serverless_bench.features.aws.stack.folder import write_folder
from serverless_bench.features.aws.stack.template import (
    DEFAULT_ARCHITECTURES,
    DEFAULT_MEMORY,
    DEFAULT_RUNTIME,
    RUNTIMES,
    THIN,
    template,
)
from serverless_bench.job.meaning import read_numbers


@click.group("aws", cls=Group)
def command() -> None:
    """Create, try and price a Lambda stack; see "AWS" in the documentation."""


@command.command("stack")
@click.argument("folder", type=FOLDER, default="sbench-stack")
@option(
    "--memory",
    default=",".join(map(str, DEFAULT_MEMORY)),
    metavar="MB[,...]",
    help="Memory sizes of the functions; the first is the default of jobs.",
)
@option(
    "--arch",
    default=",".join(DEFAULT_ARCHITECTURES),
    metavar="NAME[,...]",
    help="Their architectures, arm64 or x86_64; the first is the default of jobs.",
)
@option(
    "--copies",
    type=click.IntRange(min=1),
    default=1,
    help="Functions of each kind, which share the load.",
)
@option(
    "--runtime",
    type=click.Choice(RUNTIMES),
    default=DEFAULT_RUNTIME,
    help="Python of the functions.",
)
@option(
    "--client",
    default=THIN,
    metavar="NAME[,...]",
    help="Their client libraries: each makes a function of every kind.",
)
def stack_command(
    folder: Path, memory: str, arch: str, copies: int, runtime: str, client: str
) -> None:
    """Write a stack into FOLDER: template, recipe and code of functions of every size.

    FOLDER is sbench-stack if none is named. There `sam build` and `sam deploy` do the rest.
    """
    sizes = read_numbers("memory", memory)
    architectures, clients = arch.split(","), client.split(",")
    write_folder(
        folder,
        template([*sizes], architectures, copies=copies, runtime=runtime, clients=clients),
    )
    say(f"stack: {folder}; in it, sam build && sam deploy")


@command.command("prices")
@settings("region", region="Whose prices.  [default: the AWS configuration's]")
@option(
    "--file",
    type=FILE,
    multiple=True,
    help="Offer file of a service that you downloaded from AWS, for each once; without them the"
    " account is asked.",
)
def prices_command(region: str | None, file: tuple[Path, ...]) -> None:
    """Keep the prices of a region, from AWS's price list.

    `plan`, `--max-cost` and bills use them for jobs of that region. It takes the permission
    pricing:GetProducts, or offer files, and writes into sbench's folder of your configuration.
    """
    from serverless_bench.base.user_files import refusing
    from serverless_bench.driver.boto import configured_region
    from serverless_bench.features.cost.price_list import regional_prices
    from serverless_bench.features.cost.prices import load_prices, price_file
    from serverless_bench.rundir.files import replacing

    region = region or configured_region()
    text, missing = regional_prices(region, file)
    path = price_file(region)
    with refusing(path, "or write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as table:
            table.write(text.encode())
    say(f"prices of {region}, in AWS's list of {load_prices(path).as_of}: {path}")
    if missing:
        say(f"not in the list, so those of us-east-1: {', '.join(missing)}")


@command.command("cloudwatch")
@run_argument
@option(
    "--wait",
    type=DURATION,
    default="3m",
    help="Wait until the run has ended so long ago, because metrics arrive late.",
)
@choose_format("text", "json")
def cloudwatch_command(directory: Path, *, wait: float, format: str) -> int:
    """Read CloudWatch's throttles and concurrent executions of a run, for its reports.

    RUN is the name or the directory of a run on Lambda; the default is the latest run. It takes the
    permission cloudwatch:GetMetricData, which a stack's driver has.
    """
    from msgspec.structs import asdict

    from serverless_bench.base.clock import sleep, utc_stamp, wall_ns
    from serverless_bench.features.aws.cloudwatch import described, ended_ns, read_metrics
    from serverless_bench.rundir.run import load_run

    run = load_run(directory, detail=False)
    until_ns = ended_ns(run) + round(wait * NS_PER_S)
    if (wait_ns := until_ns - wall_ns()) > 0:
        aside(f"waiting for CloudWatch until {utc_stamp(until_ns, separators=True)}")
        sleep(wait_ns / NS_PER_S)
    metrics = read_metrics(run)
    show(format, asdict(metrics), [described(metrics)])
    return ExitCode.OK


@command.command("try")
@settings(
    *("stack", "bucket", "endpoint_url", "region", "sse", "client", "memory", "arch", "function"),
    "mb",
    stack="Stack from `sam deploy` whose functions to launch.",
    bucket="Bucket to write to.",
    mb="Size of an object in MiB.  [default: 8]",
)
@prices_option
@run_dir_option
@keep_option
@option("--yes", is_flag=True, help="Do not ask before functions are launched: for scripts.")
@choose_format("text", "json")
def try_command(
    prices: Path | None,
    run_dir: Path,
    *,
    keep: bool,
    yes: bool,
    format: str,
    **flags: Any,
) -> int:
    """Launch 2, then 20 functions for less than a cent, and predict a run of 1,000.

    The command deploys nothing. It asks the account for its limits, and asks you before it
    launches functions, which write small objects. It deletes these objects and ends with a page
    about the account, the runs, and a run of 1,000 functions.
    """
    from serverless_bench.driver.checked_job import check_job
    from serverless_bench.features.compare.task import listener
    from serverless_bench.features.cost.prices import needed_prices
    from serverless_bench.features.doctor.base import Patient
    from serverless_bench.features.doctor.examination import (
        examine_account,
        show_findings,
        with_flags_in,
    )
    from serverless_bench.features.doctor.findings import Level
    from serverless_bench.features.doctor.trial import NUMBERS, SETTINGS, SmallRuns, page

    given = {name: value for name, value in flags.items() if value not in {None, ()}}
    checked = check_job({**SETTINGS, **given})
    with checked.open_target() as target:
        job = checked.at(target)
        patient = Patient(
            region=region_of_functions(job), functions=FunctionOptions.from_work(job).function
        )
        asked = {**flags, "probe": False, "write_test": False}
        with working("asking the account"):
            findings = [*with_flags_in(examine_account(asked, patient))]
        if any(finding.level is Level.FAIL for finding in findings):
            show_findings(findings)
            return ExitCode.UNFIT
        small = SmallRuns(job=job, prices=needed_prices(job, prices), patient=patient)
        most = small.at_most
        action = f"launch {sum(NUMBERS)} functions for at most {small.prices.money(most)}"
        if not yes and not confirmed(action, hint="sbench aws try --yes"):
            return ExitCode.OK
        root = run_dir / new_name("try")
        aside(f"{action}; run directories: {root}")
        runs = small.run(root, listener(), keep=keep)
    measured, plan = [*map(small.measured, runs)], small.large(runs[-1])
    document = {"findings": findings, "at_most": most, "measured": measured, "plan": plan.to_json()}
    show(format, document, page(findings, measured, plan))
    return ExitCode(max(run["exit_code"] for run in measured))
