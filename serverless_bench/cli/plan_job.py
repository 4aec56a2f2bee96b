"""``sbench plan COMMAND``: what a whole command would use, whatever its workload."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import click
import orjson

from serverless_bench.aws.cloudformation import Stack
from serverless_bench.aws.cost.forecast import VCPU_MIB
from serverless_bench.cli.call import with_code
from serverless_bench.cli.defaults import defaults_for
from serverless_bench.cli.job import Prepared, prepare
from serverless_bench.cli.stages import WORKLOADS, command_of
from serverless_bench.driver.budget import check_memory
from serverless_bench.errors import UsageError
from serverless_bench.job.load import OWN_FUNCTION

COMMANDS: Final = (*WORKLOADS, "call")


def plan_job(
    words: Sequence[str],
    flags: Mapping[str, Any],
    *,
    quota: int,
    stack: Stack | None,
) -> None:
    """Print what a command would use and cost, if its functions ran on AWS Lambda.

    Parameters
    ----------
    words
        The command and its flags, as behind ``sbench``.
    flags
        Of ``sbench plan``: memory, arch, prices and format count.
    quota
        Functions at once.
    stack
        Of which memory and processor are taken, if there is one.

    Raises
    ------
    UsageError
        If there is no such command, or one of its flags is wrong.
    """
    from serverless_bench.driver.outlook import plan

    check_memory(flags["memory"])
    prepared = _prepared(words)
    job = prepared.job
    # Elsewhere all functions are launched at once, unless the flags say otherwise.
    found = plan(
        replace(job, concurrency=prepared.checked.settings.concurrency or job.invocations),
        prepared.keys,
        memory_mib=flags["memory"] or (stack.memory_mib if stack else VCPU_MIB),
        architecture=flags["arch"] or (stack.architecture if stack else "arm64"),
        quota=quota,
        prices=flags["prices"],
    )
    if flags["format"] == "json":
        click.echo(orjson.dumps(found.to_json()))
        return
    for title, text in (("command", " ".join(words)), *found.rows()):
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
