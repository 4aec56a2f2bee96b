"""``sbench plan``."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.base.errors import ExecutorError, SbenchError, UsageError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import (
    DURATION,
    option,
    prices_option,
)
from serverless_bench.cli.output.terminal import ExitCode, say, say_json, sections
from serverless_bench.features.aws.flags import network_quota_option
from serverless_bench.features.aws.lambda_network import BASE_MBPS
from serverless_bench.features.aws.stack.template import (
    DEFAULT_QUOTA,
    VCPU_MIB,
    DeployedFunction,
    check_memory,
    choose,
)
from serverless_bench.job.defaults import REMOTE
from serverless_bench.job.target import Target
from serverless_bench.rundir.listing import DEFAULT_ROOT, find_run

if TYPE_CHECKING:
    from serverless_bench.features.aws.account import FunctionSetup, Stack
    from serverless_bench.job.spec import JobSpec


@sections(
    last={
        REMOTE: "stack memory arch prices quota network-quota round-trip kms show-prices",
        "Forecast": "model simulate fit",
    }
)
@click.command("plan", context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND ...")
@settings(
    *("memory", "arch", "stack", "region"),
    memory=f"Memory of a function in MB.  [default: the stack's first, or {VCPU_MIB}]",
    arch="Architecture of the functions.  [default: the stack's first, or arm64]",
    stack="Read memory, architecture and quota from this stack and its account.",
    region="Region of the stack.",
)
@option(
    "--quota",
    type=click.IntRange(1),
    help=f"Concurrent functions.  [default: from the account, or {DEFAULT_QUOTA}]",
)
@network_quota_option
@option(
    "--round-trip",
    type=DURATION,
    default=0.0,
    help="Time from the driver to Lambda and back: round_trip_s in a run's run.json.",
)
@option("--kms", is_flag=True, help="The bucket has a KMS key and no bucket key.")
@prices_option
@option("--show-prices", is_flag=True, help="Write the price file and stop.")
@option(
    "--simulate",
    is_flag=True,
    help="Also simulate every request of COMMAND, and save that as a run directory.",
)
@option(
    "--model",
    default="aws-lambda",
    metavar="NAME|FILE",
    help="Parameters of the forecast: aws-lambda, loopback, or a TOML file that modifies one of"
    " them.",
)
@option(
    "--fit",
    metavar="RUN",
    help="Write a file of parameters fitted to a run, for --model, and stop.",
)
@option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Tables, or one JSON object.",
)
def command(words: tuple[str, ...], **flags: Any) -> int:
    """Estimate the resources, the duration and the cost of a job on AWS Lambda.

    COMMAND runs a workload, as write, mixed and call do, and is followed by its own flags. No
    function is started, and no request is sent to AWS without --stack.
    """
    if lines := _file(flags):
        say(*lines)
        return ExitCode.OK
    from serverless_bench.features.cost.planned_command import job_of, prepare_command

    if not words:
        raise UsageError("plan needs a command", hint="sbench plan write --number 1000")
    check_memory(flags["memory"])
    prepared = prepare_command(words, plans=True)
    # A refusal does not wait for NumPy.
    from serverless_bench.features.cost.model import load_model
    from serverless_bench.features.cost.outlook import plan

    model = load_model(flags["model"])
    stack = None
    if flags["stack"]:
        # Only a plan with a stack sends requests, and needs botocore.
        from serverless_bench.features.aws.account import read_stack

        stack = read_stack(flags["stack"], region=flags["region"])
    job, functions = job_of(prepared), tuple[DeployedFunction, ...]()
    if stack is not None:
        functions = choose(
            stack.functions,
            client=job.target.client,
            memory=flags["memory"],
            arch=flags["arch"],
        )
        job = _on_stack(job, stack, functions)
    setups = _setups(stack, functions)
    quota, quota_from = _quota(flags["quota"], stack, setups)
    if stack is not None or prepared.checked.settings.value("stack") is not None:
        # Other plans send no request.
        job = replace(job, target=_with_kms_of_bucket(job.target))
    if flags["kms"]:
        job = replace(job, target=replace(job.target, uses_kms=True))
    planned = plan(
        job,
        prepared.keys,
        memory=functions[0].memory_mib if functions else flags["memory"],
        arch=functions[0].architecture if functions else flags["arch"],
        quota=quota if model.function.on_lambda else flags["quota"],
        network_quota=_network_mbps(flags["network_quota"], stack),
        round_trip_s=flags["round_trip"],
        in_vpc=any(setup.in_vpc for setup in setups.values()),
        prices=flags["prices"],
        model=model,
    )
    rows = [("command", " ".join(words)), ("quota", f"{quota} ({quota_from})"), *planned.rows()]
    document = {**planned.to_json(), "quota_from": quota_from}
    if flags["simulate"]:
        document["run_dir"] = str(TOOLS.load("simulation")(planned, prepared))
        rows.append(("simulated run", f"{document['run_dir']}: see sbench report"))
    if "json" in {flags["format"], prepared.output.format}:
        say_json(document)
        return ExitCode.OK
    say(*(f"{title:<20} {text}" for title, text in rows))
    say(*(f"warning: {text}" for text in planned.warnings), fg="yellow")
    return ExitCode.OK


def _file(flags: Mapping[str, Any]) -> Sequence[str]:
    """Return the lines of the file that the flags ask for instead of a plan."""
    if flags["show_prices"]:
        from serverless_bench.features.cost.prices import price_text

        return price_text(flags["prices"]).splitlines()
    if flags["fit"]:
        from serverless_bench.features.cost.fit import fit
        from serverless_bench.rundir.run import load_run

        return [*fit(load_run(find_run(flags["fit"], DEFAULT_ROOT)))]
    return ()


def _on_stack(job: "JobSpec", stack: "Stack", functions: Sequence[DeployedFunction]) -> "JobSpec":
    """Return a job with the functions of a stack, and its bucket unless the job names one."""
    target = job.target
    if target.store is not None:
        target = replace(target, bucket=stack.data_bucket, region=stack.data_region, store=None)
    names = tuple(deployed.name for deployed in functions)
    return replace(job, target=target).with_options(function_region=stack.region, function=names)


def _setups(
    stack: "Stack | None", functions: Sequence[DeployedFunction]
) -> "Mapping[str, FunctionSetup]":
    """Return the configurations of functions by name; empty without permission to read them."""
    if stack is not None:
        from serverless_bench.features.aws.account import read_function

        with suppress(ExecutorError):
            return {
                deployed.name: read_function(deployed.name, region=stack.region)
                for deployed in functions
            }
    return {}


def _network_mbps(given: float | None, stack: "Stack | None") -> float:
    """Return the network quota of a function."""
    if given is None and stack is not None:
        from serverless_bench.features.aws.account import read_network_quota

        with suppress(ExecutorError):
            given = read_network_quota(region=stack.region)
    return given or BASE_MBPS


def _quota(
    given: int | None, stack: "Stack | None", setups: "Mapping[str, FunctionSetup]"
) -> tuple[int, str]:
    """Return the number of functions that may run concurrently, and the source of the number."""
    if given is not None:
        return given, "--quota"
    if stack is None:
        return DEFAULT_QUOTA, "AWS's default; a new account has less"
    reserved = [setup.reserved for setup in setups.values()]
    if reserved and None not in reserved:
        return max(1, sum(filter(None, reserved))), f"reserved for {', '.join(setups)}"
    from serverless_bench.features.aws.account import read_quota

    try:
        quota = read_quota(region=stack.region)
    except ExecutorError as exc:
        return DEFAULT_QUOTA, f"AWS's default: {exc}"
    return max(1, quota.unreserved), f"the account's in {stack.region}, unreserved"


def _with_kms_of_bucket(target: Target) -> Target:
    """Return the target of a plan with the KMS setting of its bucket, if that can be read."""
    from serverless_bench.driver.target import resolve, with_encryption

    with suppress(SbenchError):
        find = with_encryption if target.endpoint_url else resolve
        return replace(target, uses_kms=find(target).uses_kms)
    return target
