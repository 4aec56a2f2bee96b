"""``sbench plan COMMAND``: what a whole command would use, whatever its workload."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from serverless_bench.cli.flags.defaults import defaults_for
from serverless_bench.cli.job import Prepared, prepare
from serverless_bench.cli.main import COMMANDS as ALL_COMMANDS
from serverless_bench.cli.main import open_command
from serverless_bench.errors import UsageError
from serverless_bench.job.workload import WORKLOADS, open_workload

if TYPE_CHECKING:
    from serverless_bench.driver.outlook import JobPlan
    from serverless_bench.job.spec import JobSpec

_WORKLOADS: Final = {open_workload(name).command or name: name for name in WORKLOADS}
"""By the command that runs each."""
COMMANDS: Final = tuple(name for name in ALL_COMMANDS if name in _WORKLOADS)
_ABOUT_COMMAND: Final = frozenset(
    {
        "arch",
        "format",
        "memory",
        "model",
        "network_quota",
        "prices",
        "quota",
        "region",
        "runs",
        "show_prices",
        "simulate",
        "stack",
        "words",
    }
)
"""Flags before a command that say something of it."""


def check_flags(words: Sequence[str]) -> None:
    """Refuse flags before a command that belong behind it.

    Raises
    ------
    UsageError
        If there is one: it would say nothing.
    """
    context = click.get_current_context()
    for parameter in context.command.params if words else ():
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in _ABOUT_COMMAND and source is ParameterSource.COMMANDLINE:
            flag = parameter.opts[-1]
            raise UsageError(
                f"{flag} stands before {words[0]}, where it says nothing of it",
                hint=f"give {flag} behind {words[0]}, if that has it",
            )


def plan_command(words: Sequence[str], **how: Any) -> "JobPlan":  # noqa: ANN401 - of plan
    """Return what a command would use and cost, if its functions ran on AWS Lambda.

    Parameters
    ----------
    words
        The command and its flags, as behind ``sbench``.
    how
        As in ``driver.outlook.plan``.

    Raises
    ------
    UsageError
        If there is no such command, or one of its flags is wrong.
    """
    from serverless_bench.driver.outlook import plan

    prepared = prepare_command(words)
    return plan(job_of(prepared), prepared.keys, **how)


def job_of(prepared: Prepared) -> "JobSpec":
    """Return the job of a command, as it would run where all its functions run at once."""
    # Elsewhere all functions are launched at once, unless the flags say otherwise.
    at_once = prepared.checked.settings.concurrency or prepared.job.number
    target, remote = prepared.job.target, prepared.checked.remote
    endpoints: Sequence[str] = (target.endpoint_url, *prepared.job.endpoints)
    if target.store is None and not target.endpoint_url:
        from serverless_bench.driver.target import configured_endpoints

        endpoints = tuple(configured_endpoints(target.protocol))
    target = replace(
        target,
        endpoint_url=next(iter(endpoints), ""),
        # A bucket in a region that nobody names is where the functions are, unless that is denied.
        region=target.region or ("" if remote.far else remote.region or ""),
    )
    return replace(prepared.job, target=target, endpoints=tuple(endpoints[1:]), concurrency=at_once)


def prepare_command(words: Sequence[str]) -> Prepared:
    """Return a command with its flags, checked.

    Raises
    ------
    UsageError
        If there is no such command, or one of its flags is wrong.
    """
    name, *arguments = words
    if name not in COMMANDS:
        raise UsageError(
            f"there is no command {name!r} to plan", hint=f"one of {', '.join(COMMANDS)}"
        )
    command = open_command(name)
    flags = command.make_context(
        name,
        arguments,
        parent=click.get_current_context(),
        default_map=defaults_for(command),
    ).params
    return prepare(_WORKLOADS[name], flags)
