"""``sbench plan COMMAND``: what a whole command would use, whatever its workload."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import click
import orjson

from serverless_bench.aws.cloudformation import Stack
from serverless_bench.aws.cost.expected import Expected, Setting, at_most, expected
from serverless_bench.aws.cost.forecast import VCPU_MIB
from serverless_bench.aws.cost.prices import Prices
from serverless_bench.aws.cost.usage import BilledUsage, format_money, price
from serverless_bench.cli.call import with_code
from serverless_bench.cli.defaults import defaults_for
from serverless_bench.cli.job import Prepared, prepare
from serverless_bench.cli.stages import WORKLOADS, command_of
from serverless_bench.driver.budget import check_memory
from serverless_bench.errors import UsageError
from serverless_bench.job.keys import declared_size
from serverless_bench.job.spec import OWN_FUNCTION, JobSpec
from serverless_bench.units import format_seconds, format_size

COMMANDS: Final = (*WORKLOADS, "call")


def plan_job(
    words: Sequence[str],
    flags: Mapping[str, Any],
    *,
    quota: int,
    stack: Stack | None,
    prices: Prices,
) -> None:
    """Print what a command would use and cost, if its functions ran on AWS Lambda.

    Parameters
    ----------
    words
        The command and its flags, as behind ``sbench``.
    flags
        Of ``sbench plan``: memory, arch and format count.
    quota
        Functions at once.
    stack
        Of which memory and processor are taken, if there is one.
    prices
        What is paid.

    Raises
    ------
    UsageError
        If there is no such command, or one of its flags is wrong.
    """
    check_memory(flags["memory"])
    prepared = _prepared(words)
    setting = Setting(
        memory_mib=flags["memory"] or (stack.memory_mib if stack else VCPU_MIB),
        architecture=flags["arch"] or (stack.architecture if stack else "arm64"),
        object_bytes=_mean(prepared.keys),
        quota=quota,
    )
    job, asked = prepared.job, prepared.checked.settings.concurrency
    # As it would run there: all at once, as far as the quota goes, and with claims and records.
    at_once = min(asked or job.invocations, job.invocations, quota)
    job = replace(job, concurrency=at_once, control=job.target)
    foreseen, most = expected(job, setting), at_most(job, setting)
    if flags["format"] == "json":
        click.echo(orjson.dumps(_to_json(job, foreseen, most, prices)))
        return
    for title, text in _rows(words, job, foreseen, most, prices):
        click.echo(f"{title:<20} {text}")
    sys.stdout.flush()


def _prepared(words: Sequence[str]) -> Prepared:
    """Return what the command would start."""
    name, *arguments = words
    if name not in COMMANDS:
        raise UsageError(
            f"there is no command {name!r} to plan", hint=f"one of {', '.join(COMMANDS)}"
        )
    command = command_of(name)
    context = command.make_context(
        name,
        arguments,
        parent=click.get_current_context(),
        default_map=defaults_for(command),
    )
    if name == "call":
        return prepare(OWN_FUNCTION, with_code(context.params))
    return prepare(name, context.params)


def _mean(keys: Sequence[str]) -> int | None:
    sizes = [size for key in keys if (size := declared_size(key)) is not None]
    return sum(sizes) // len(sizes) if sizes else None


def _to_json(
    job: JobSpec, foreseen: Expected | None, most: BilledUsage, prices: Prices
) -> dict[str, Any]:
    each = price(most, prices)
    found: dict[str, Any] = {
        "workload": job.workload,
        "functions": job.invocations,
        "at_once": job.concurrency,
        "expected": None,
        "total": None,
        "at_most": {
            "usage_each": asdict(most),
            "each": each.total,
            "at_once": job.concurrency * each.total,
            "total": job.invocations * each.total,
        },
        "currency": prices.currency,
        "prices_as_of": prices.as_of,
    }
    if foreseen is not None:
        dollars = price(foreseen.usage, prices)
        found["expected"] = asdict(foreseen) | {"dollars": asdict(dollars)}
        found["total"] = dollars.total
    return found


def _rows(
    words: Sequence[str], job: JobSpec, foreseen: Expected | None, most: BilledUsage, prices: Prices
) -> Iterator[tuple[str, str]]:
    def money(amount: float) -> str:
        return format_money(amount, prices.currency)

    yield "command", " ".join(words)
    yield "functions", f"{job.invocations:,}, at most {job.concurrency:,} at once"
    if foreseen is None:
        yield "expected", "nobody can know what it moves; below is what it could"
    else:
        dollars, usage = price(foreseen.usage, prices), foreseen.usage
        yield "operations", f"about {foreseen.operations:,.0f} in each function"
        yield "bytes", f"about {format_size(foreseen.bytes)}"
        yield "a function takes", f"{format_seconds(foreseen.function_s)}, billed"
        yield "requests", f"{usage.puts:,} of the PUT class, {usage.gets:,} of the GET class"
        parts = {name: getattr(dollars, name) for name in asdict(dollars)}
        shown = ", ".join(f"{name} {money(amount)}" for name, amount in parts.items() if amount)
        yield "expected", f"{money(dollars.total)}: {shown}"
    each = price(most, prices).total
    limit = f"that runs until its --deadline of {job.deadline_s:g} s"
    together = f"{money(job.concurrency * each)} for all that are out at once"
    yield "at most", f"{money(each)} a function {limit}, {together}"
    yield "prices", f"of {prices.as_of}, {prices.region}"
