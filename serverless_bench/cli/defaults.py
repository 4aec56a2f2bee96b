"""The user's own defaults for flags, from ``sbench.toml``.

Flags at the top of the file apply to every command that has them, flags in a table
named after a command to that one. SBENCH_CONFIG names another file; without it the
current directory is looked at. Environment variables and the command line win.
"""

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.options import (
    group,
    load_options,
    object_options,
    run_options,
    spelled,
    target_options,
    transfer_options,
)
from serverless_bench.errors import UsageError


def defaults_for(command: click.Command) -> dict[str, Any]:
    """Return the defaults for ``command``, by parameter name.

    Raises
    ------
    UsageError
        If the file cannot be read, or names a flag that the command does not have.
    """
    named = os.environ.get("SBENCH_CONFIG")
    path = Path(named or "sbench.toml")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise UsageError(f"there is no {path}, which SBENCH_CONFIG names") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise UsageError(f"cannot read {path}: {exc}") from exc
    known = dict(_parameters(command))
    _check_names(path, data, known)
    common = {name: value for name, value in data.items() if not isinstance(value, dict)}
    own = data.get(str(command.name), {})
    unknown = sorted(name for name in own if spelled(name) not in known)
    if unknown:
        raise UsageError(
            f"{path}: [{command.name}] has no flag {unknown[0]!r}",
            hint=f"known flags: {', '.join(sorted(known))}",
        )
    return {known[spelled(n)]: v for n, v in {**common, **own}.items() if spelled(n) in known}


def _check_names(path: Path, data: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse tables of no command, and flags at the top that no command has.

    Raises
    ------
    UsageError
        If there is one.
    """
    from serverless_bench.cli.main import COMMANDS, open_command

    tables = {name for name, value in data.items() if isinstance(value, dict)}
    for name in sorted(tables - {*COMMANDS}):
        raise UsageError(
            f"{path}: there is no command {name!r} for the table [{name}]",
            hint=f"known commands: {', '.join(COMMANDS)}",
        )
    strange = {name for name in data if name not in tables and spelled(name) not in known}
    # Most are of the shared groups; only for others all commands have to be imported.
    strange = {name for name in strange if spelled(name) not in _shared()}
    if strange:
        everywhere = {flag for name in COMMANDS for flag, _ in _all_parameters(open_command(name))}
        for name in sorted(strange):
            if spelled(name) not in everywhere:
                raise UsageError(
                    f"{path}: no command has a flag {name!r}",
                    hint=f"known flags: {', '.join(sorted(everywhere))}",
                )


def _shared() -> set[str]:
    """Return the flags of the groups that commands share."""
    every = group(target_options, transfer_options, load_options, object_options, run_options)
    made = every(click.Command("all", callback=lambda: None))
    return {"number", "objects", "prefix", "format", *dict(_parameters(made))}


def _all_parameters(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a command, and of the commands in it."""
    yield from _parameters(command)
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from _all_parameters(one)


def _parameters(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield how each flag is spelled, and the name of its parameter."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name:
            yield spelled(parameter.name), parameter.name
