"""``sbench plan``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import click

from serverless_bench.aws.account import (
    FunctionSetup,
    Stack,
    read_function,
    read_network_quota,
    read_quota,
    read_stack,
)
from serverless_bench.aws.cost.advice import Trap, traps, warnings
from serverless_bench.aws.cost.forecast import (
    DEFAULT_QUOTA,
    LIMIT_PER_S,
    VCPU_MIB,
    Forecast,
    PlannedLoad,
    Route,
    forecast,
)
from serverless_bench.aws.cost.places import regions
from serverless_bench.aws.cost.prices import (
    Dollars,
    Prices,
    needed_prices,
    origin,
    price,
    price_text,
)
from serverless_bench.aws.lambda_network import BASE_MBPS
from serverless_bench.aws.stack.template import DeployedFunction, check_memory, choose
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import (
    harmless,
    network_quota_option,
    option,
    prices_option,
)
from serverless_bench.cli.output.terminal import say, say_json
from serverless_bench.errors import ExecutorError, SbenchError, UsageError
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import Target
from serverless_bench.job.types import at_least
from serverless_bench.plugins import TOOLS
from serverless_bench.reporters.text_table import table
from serverless_bench.units import MIB, format_count, format_rate, format_seconds, format_size

_PHASES: Final = {"write": OperationKind.PUT, "read": OperationKind.GET}
_OF_STACK: Final = frozenset({"stack", "region", "memory", "arch"})
"""Settings for reading the stack, which the planned job does not use."""
_COMPONENTS: Final = {
    "compute": "Lambda GB-seconds",
    "invocations": "Lambda requests",
    "puts": "S3 PUT class",
    "gets": "S3 GET",
    "control": "control requests",
    "storage": "storage",
    "logs": "logs",
    "network": "NAT, region, S3 Express",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phase:
    """Phase of the plan, such as the write."""

    name: str
    load: PlannedLoad
    expected: Forecast
    dollars: Dollars


@dataclass(frozen=True, slots=True, kw_only=True)
class _PhasePlan:
    """Plan with all values of the output."""

    phases: Sequence[_Phase]
    prices: Prices
    regions: Sequence[str]
    """Regions of the stack."""
    traps: Sequence[Trap]
    quota_from: str
    keep_h: float

    @property
    def total(self) -> float:
        """Cost of all phases."""
        return sum(phase.dollars.total for phase in self.phases)

    @property
    def warnings(self) -> list[str]:
        """Distinct warnings of all phases."""
        by_phase = (warnings(phase.load, phase.expected) for phase in self.phases)
        return list(dict.fromkeys(text for texts in by_phase for text in texts))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench plan``."""
        return {
            "phases": {
                phase.name: {
                    "load": {**asdict(phase.load), "total_bytes": phase.load.total_bytes},
                    "expected": asdict(phase.expected),
                    "dollars": {**asdict(phase.dollars), "total": phase.dollars.total},
                }
                for phase in self.phases
            },
            "total": self.total,
            "currency": self.prices.currency,
            "prices_as_of": self.prices.as_of,
            "prices_region": self.prices.region,
            "regions": self.regions,
            "quota_from": self.quota_from,
            "warnings": self.warnings,
            "traps": {trap.name: trap.amount for trap in self.traps},
        }


@click.command("plan", context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND ...]")
@settings(
    *("number", "mb", "size", "objects", "read_times", "client"),
    *(
        "connections",
        "part_size",
        "block_size",
        "verify",
        "retries",
        "timeout",
        "min_split_size",
        "stat",
    ),
    *("memory", "arch", "stack", "region"),
    memory=f"Memory of a function in MB.  [default: the stack's first, or {VCPU_MIB}]",
    arch="Processor of the functions.  [default: the stack's first, or arm64]",
    stack="Read memory, processor and quota from this stack and its account.",
    region="Region of the stack.",
)
@harmless(
    "--workload",
    type=click.Choice(["write", "read", "both"]),
    default="both",
    help="Workload to plan.",
)
@harmless(
    "--quota",
    type=click.IntRange(1),
    help=f"Concurrent functions.  [default: from the account, or {DEFAULT_QUOTA}]",
)
@network_quota_option
@harmless(
    "--round-trip",
    type=click.FloatRange(0),
    default=0.0,
    help="Seconds from the driver to Lambda and back: round_trip_s in a run's run.json.",
)
@harmless(
    "--function-mb-s",
    type=click.FloatRange(min=0, min_open=True),
    help="Measured throughput of one function in MB/s (10**6).  [default: from a model]",
)
@harmless(
    "--vpc",
    type=click.Choice([route.value for route in Route]),
    default=Route.NONE.value,
    help="Route from the functions to the store.",
)
@harmless("--express", is_flag=True, help="The objects are in S3 Express One Zone.")
@harmless("--kms", is_flag=True, help="The bucket has a KMS key and no bucket key.")
@harmless(
    "--cross-region", is_flag=True, help="The bucket is in another region than the functions."
)
@harmless("--keep", type=click.FloatRange(0), default=1.0, help="Hours to keep the objects.")
@prices_option
@harmless("--show-prices", is_flag=True, help="Write the price file and stop.")
@harmless(
    "--simulate",
    is_flag=True,
    help="Simulate COMMAND with a model into a run directory, and report on it.",
)
@option(
    "--model",
    show_default=False,
    metavar="NAME|FILE",
    help="With --simulate: aws-lambda, loopback, or a TOML file that modifies one of them."
    "  [default: aws-lambda]",
)
@harmless(
    "--runs",
    type=click.IntRange(1, 1000),
    default=1,
    help="With --simulate: simulations with consecutive seeds; the report has their range.",
)
@harmless(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Tables, or one JSON object.",
)
def command(words: tuple[str, ...], **flags: Any) -> int:  # noqa: ANN401 - too many to name
    """Estimate the resources, the duration and the cost of a job on AWS Lambda.

    The command starts no function, and sends no request to AWS without --stack. With COMMAND
    (write, read, mixed, array or call) and its flags, plan this command. Before COMMAND, only
    --memory, --arch, --quota, --network-quota, --stack, --region, --prices, --simulate, --model,
    --runs and --format apply.
    """
    if flags["show_prices"]:
        say(*price_text(flags["prices"]).splitlines())
        return ExitCode.OK
    from serverless_bench.cli.nested import check_flags, plan_command

    check_flags(words)
    _check_simulation(words, flags)
    check_memory(flags["memory"])
    at_least("read_times", flags["read_times"], 1)
    stack = read_stack(flags["stack"], region=flags["region"]) if flags["stack"] else None
    functions = choose(stack.functions, memory=flags["memory"], arch=flags["arch"]) if stack else ()
    setups = _setups(stack, functions)
    quota, quota_from = _quota(flags["quota"], stack, setups)
    account: dict[str, Any] = {
        "memory_mib": functions[0].memory_mib if functions else flags["memory"] or VCPU_MIB,
        "architecture": functions[0].architecture if functions else flags["arch"] or "arm64",
        "quota": quota,
        "network_mbps": _network_mbps(flags["network_quota"], stack),
    }
    if flags["simulate"]:
        simulate = TOOLS.load("simulation")
        return int(simulate(words, flags, {**account, "names": max(1, len(functions))}))
    if any(setup.in_vpc for setup in setups.values()) and flags["vpc"] == Route.NONE:
        flags["vpc"] = Route.GATEWAY
    plan = (
        plan_command(words, prices=flags["prices"], **account)
        if words
        else _plan(flags, {**account, "names": max(1, len(functions))}, quota_from, stack)
    )
    if flags["format"] == "json":
        say_json(plan.to_json())
    elif isinstance(plan, _PhasePlan):
        _show(plan)
    else:
        rows = (("command", " ".join(words)), *plan.rows())
        say(*(f"{title:<20} {text}" for title, text in rows))
    return ExitCode.OK


def _check_simulation(words: Sequence[str], flags: Mapping[str, Any]) -> None:
    """Check the flags of a simulation.

    Raises
    ------
    UsageError
        If the command is missing, or a flag needs --simulate.
    """
    lone, start = not flags["simulate"], "sbench plan --simulate"
    for is_wrong, problem, example in (
        (lone and flags["model"] is not None, "--model needs --simulate", "--model ... write"),
        (lone and flags["runs"] > 1, "--runs needs --simulate", "--runs 20 write"),
        (not (lone or words), "--simulate needs a command", "write --number 100000"),
    ):
        if is_wrong:
            raise UsageError(problem, hint=f"{start} {example}")


def _plan(
    flags: Mapping[str, Any], account: Mapping[str, Any], quota_from: str, stack: Stack | None
) -> _PhasePlan:
    from serverless_bench.driver.checked_job import check_job
    from serverless_bench.driver.target import resolve
    from serverless_bench.settings.names import setting_names

    # The stack only describes the functions; it does not run this job.
    given = {n: flags[n] for n in setting_names("write") if n in flags and n not in _OF_STACK}
    job = check_job({**given, "workload": "write"}).job
    if stack is not None:
        target = replace(job.target, bucket=stack.data_bucket, region=stack.data_region)
        with suppress(SbenchError):
            bucket = resolve(Target(bucket=target.bucket, region=target.region))
            target = replace(target, asks_kms=bucket.asks_kms)
        job = replace(job, target=target, function_region=stack.region)
    stack_regions = () if stack is None else regions(job)
    prices, rate = needed_prices(job, flags["prices"]), flags["function_mb_s"]
    common: dict[str, Any] = {
        **account,
        "functions": job.number,
        "round_trip_s": flags["round_trip"],
        "objects": job.objects,
        "object_bytes": job.size,
        "transfer": job.transfer,
        "client": job.target.client,
        "bytes_per_s": None if rate is None else rate * 1e6,
        "keep_h": flags["keep"],
        "express": flags["express"],
        "asks_kms": flags["kms"] or job.target.asks_kms,
        "route": Route(flags["vpc"]),
        "cross_region": flags["cross_region"] or len(stack_regions) > 1,
    }
    phases = []
    for name in _PHASES if flags["workload"] == "both" else (flags["workload"],):
        repeats = flags["read_times"] if name == "read" else 1
        load = PlannedLoad(kind=_PHASES[name], repeats=repeats, **common)
        expected = forecast(load)
        dollars = price(expected.usage, prices)
        phases.append(_Phase(name=name, load=load, expected=expected, dollars=dollars))
    return _PhasePlan(
        phases=phases,
        prices=prices,
        regions=stack_regions,
        traps=traps([phase.load for phase in phases], prices),
        quota_from=quota_from,
        keep_h=flags["keep"],
    )


def _setups(
    stack: Stack | None, functions: Sequence[DeployedFunction]
) -> Mapping[str, FunctionSetup]:
    """Return the configurations of functions by name; empty without permission to read them."""
    if stack is not None:
        with suppress(ExecutorError):
            return {
                deployed.name: read_function(deployed.name, region=stack.region)
                for deployed in functions
            }
    return {}


def _network_mbps(given: float | None, stack: Stack | None) -> float:
    """Return the network quota of a function."""
    if given is None and stack is not None:
        with suppress(ExecutorError):
            given = read_network_quota(region=stack.region)
    return given or BASE_MBPS


def _quota(
    given: int | None, stack: Stack | None, setups: Mapping[str, FunctionSetup]
) -> tuple[int, str]:
    """Return the number of functions that may run concurrently, and the source of the number."""
    if given is not None:
        return given, "--quota"
    if stack is None:
        return DEFAULT_QUOTA, "AWS's default; a new account has less"
    reserved = [setup.reserved for setup in setups.values()]
    if reserved and None not in reserved:
        return max(1, sum(filter(None, reserved))), f"reserved for {', '.join(setups)}"
    try:
        quota = read_quota(region=stack.region)
    except ExecutorError as exc:
        return DEFAULT_QUOTA, f"AWS's default: {exc}"
    return max(1, quota.unreserved), f"the account's in {stack.region}, unreserved"


def _show(plan: _PhasePlan) -> None:
    load = plan.phases[0].load
    functions = format_count(load.functions, "function")
    connections = format_count(load.transfer.connections, "connection")
    lines = list[str]()
    for header, *rows in (_expectations(plan), _costs(plan)):
        lines += ["", *table(header, rows, "text", align="l".ljust(len(header), "r"))]
    say(
        f"{functions}, {load.objects} x {load.object_bytes / MIB:g} MiB each, {connections},"
        f" {load.memory_mib} MB on {load.architecture}",
        f"at once: {load.quota} ({plan.quota_from})",
        *lines,
        "",
    )
    say(*(f"warning: {text}" for text in plan.warnings), fg="yellow")
    extra = (f"  {trap.text}: {plan.prices.money(trap.amount)}" for trap in plan.traps)
    say("possible additional costs", *extra)


def _expectations(plan: _PhasePlan) -> Iterator[tuple[str, ...]]:
    columns = [_column(phase.name, phase.load, phase.expected) for phase in plan.phases]
    for title in columns[0]:
        yield (title, *(column[title] for column in columns))


def _column(name: str, load: PlannedLoad, expected: Forecast) -> Mapping[str, str]:
    """Return the cells of a phase by the titles of their rows."""
    return {
        "expected": name,
        "bytes": format_size(load.total_bytes),
        "waves": str(expected.waves),
        "last function starts after": format_seconds(expected.launch_s),
        "a function moves bytes for": format_seconds(expected.transfer_s),
        "and is billed for": format_seconds(expected.function_s),
        "the phase takes": format_seconds(expected.run_s),
        "whole throughput": format_rate(load.total_bytes / expected.run_s),
        "requests/s of limit": f"{expected.requests_per_s:,.0f} of"
        f" {LIMIT_PER_S[load.kind]:,} {load.kind.upper()}/s",
        "part or range at least": f"{expected.part_bytes // MIB} MiB",
        "memory needed": f"{expected.memory_needed_mib} of {load.memory_mib} MB",
        "network, after a burst": format_rate(load.sustained_bytes_per_s),
        "disk (/tmp) needed": "none",
    }


def _costs(plan: _PhasePlan) -> Iterator[tuple[str, ...]]:
    dollars = [phase.dollars for phase in plan.phases]
    yield ("cost", *(phase.name for phase in plan.phases), "together")
    for component, name in _COMPONENTS.items():
        amounts = [getattr(cost, component) for cost in dollars]
        title = f"{name}, {plan.keep_h:g} h" if component == "storage" else name
        yield (title, *(plan.prices.money(amount) for amount in (*amounts, sum(amounts))))
    totals = [cost.total for cost in dollars]
    yield ("total", *(plan.prices.money(amount) for amount in (*totals, plan.total)))
    source = origin(plan.prices.as_of, plan.prices.region, plan.regions)
    yield (f"prices {source}", *("" for _ in totals), "")
