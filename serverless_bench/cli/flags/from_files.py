"""Flags that stand in a file: what it does not say comes from the environment and sbench.toml."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from serverless_bench.cli.flags.defaults import defaults_for
from serverless_bench.cli.flags.names import spelled
from serverless_bench.errors import UsageError


def options_of(command: click.Command) -> dict[str, click.Parameter]:
    """Return the flags of a command, and what it takes without a flag, by how they are spelled."""
    return {spelled(parameter.name): parameter for parameter in command.params if parameter.name}


def check_known(command: click.Command, keys: Iterable[str], without: Iterable[str]) -> None:
    """Refuse keys that are no flags of a command.

    Parameters
    ----------
    command
        Of which they should be.
    keys
        As a file spells them.
    without
        Flags that the command has and the file may not set.

    Raises
    ------
    UsageError
        If there is one.
    """
    known = options_of(command).keys() - set(without)
    for key in keys:
        if spelled(key) not in known:
            raise UsageError(
                f"{command.name} has no flag {key!r}", hint=f"known: {', '.join(sorted(known))}"
            )


def flags_of(command: click.Command, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all flags of a command by parameter name, those given as they are.

    Parameters
    ----------
    command
        Whose flags.
    given
        Values by flag; of flags that the command does not have, nothing is taken.

    Raises
    ------
    UsageError
        If an argument is missing, or what the environment or sbench.toml says is wrong.
    """
    own = {flag: parameter for flag, parameter in options_of(command).items() if flag in given}
    arguments = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.name:
            if parameter.name not in given:
                raise UsageError(f"{parameter.name} is missing")
            arguments.append(str(given[parameter.name]))
    try:
        context = command.make_context(
            str(command.name),
            arguments,
            parent=click.get_current_context(silent=True),
            default_map=defaults_for(command),
        )
    except click.ClickException as exc:
        # Some of click's messages have several lines.
        raise UsageError(" ".join(exc.format_message().split())) from exc
    return {**context.params, **{str(own[flag].name): given[flag] for flag in own}}
