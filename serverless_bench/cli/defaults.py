"""The user's own defaults for flags, from ``sbench.toml``.

Flags at the top of the file apply to every command that has them, flags in a table
named after a command to that one. SBENCH_CONFIG names another file; without it the
current directory is looked at, and with the null device nothing is. Environment variables
and the command line win.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.flag_names import spelled, well_known
from serverless_bench.errors import UsageError


def defaults_for(command: click.Command) -> dict[str, Any]:
    """Return the defaults for ``command``, by parameter name.

    Those of a group stand by the names of its commands; a table named after the group is for all
    that have the flag.

    Raises
    ------
    UsageError
        If the file cannot be read, or names a flag that the command does not have.
    """
    named = os.environ.get("SBENCH_CONFIG")
    if named == os.devnull:
        return {}
    path = Path(named or "sbench.toml")
    if not path.exists():
        if named:
            raise UsageError(f"there is no {path}, which SBENCH_CONFIG names")
        return {}
    from serverless_bench.driver.schema import located
    from serverless_bench.user_files import read_toml

    data = read_toml(path)
    known = {flag for flag, _ in _all_parameters(command)}
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    common = {name: value for name, value in data.items() if name not in tables}
    _check_names(path, tables, {name for name in common if spelled(name) not in known})
    own = tables.get(str(command.name), {})
    for name in sorted(own):
        if spelled(name) not in known:
            raise _unknown(path, f"[{command.name}] has no flag {name!r}", sorted(known))
    given = {spelled(name): value for name, value in {**common, **own}.items()}
    with located(str(path)):
        if isinstance(command, click.Group):
            return {name: _of(one, given) for name, one in command.commands.items()}
        return _of(command, given)


def _of(command: click.Command, given: Mapping[str, object]) -> dict[str, Any]:
    """Return what is given for flags that a command has, by parameter name."""
    known = dict(_parameters(command))
    return {known[flag]: _checked(command, flag, given[flag]) for flag in given if flag in known}


def _checked(command: click.Command, flag: str, value: object) -> object:
    """Return the default of a flag if it is what a command line could say.

    Raises
    ------
    UsageError
        If it is a table or a date, has characters that cannot be printed, or is no text where
        a path belongs.
    """
    from serverless_bench.driver.job_file import Setting
    from serverless_bench.driver.schema import converted
    from serverless_bench.job.types import check_text, wrong

    setting: Any = converted(Setting, flag, value)
    own = next(one for one in command.params if spelled(one.name or "") == flag)
    for one in setting if isinstance(setting, tuple) else (setting,):
        if isinstance(one, str):
            check_text(flag, one)
    if isinstance(setting, tuple) and not getattr(own, "multiple", False):
        raise wrong(flag, f"must be one value, got {setting!r}")
    if isinstance(own.type, click.Path) and not isinstance(setting, str):
        raise wrong(flag, f"must be text, got {setting!r}")
    return setting


def _check_names(path: Path, tables: Iterable[str], strange: Iterable[str]) -> None:
    """Refuse tables of no command, and flags at the top that no command has.

    Parameters
    ----------
    path
        The file.
    tables
        Those that are in it.
    strange
        Flags at its top that the command at hand does not have.

    Raises
    ------
    UsageError
        If there is one.
    """
    from serverless_bench.cli.main import COMMANDS, open_command

    for name in sorted(tables):
        if name not in COMMANDS:
            what = f"there is no command {name!r} for the table [{name}]"
            raise _unknown(path, what, COMMANDS, "commands")
    # What stands before a job is no flag.
    shared = well_known() - {"operation"}
    # Most are those of a job; only for others all commands have to be imported.
    if stranger := {name for name in strange if spelled(name) not in shared}:
        everywhere = {flag for name in COMMANDS for flag, _ in _all_parameters(open_command(name))}
        for name in sorted(stranger):
            if spelled(name) not in everywhere:
                raise _unknown(path, f"no command has a flag {name!r}", sorted(everywhere))


def _unknown(path: Path, what: str, known: Iterable[str], kind: str = "flags") -> UsageError:
    return UsageError(f"{path}: {what}", hint=f"known {kind}: {', '.join(known)}")


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
