"""The user's own defaults for flags, from ``sbench.toml``.

Flags at the top of a file apply to every command that has them, flags in a table named
after a command to that one. ``--config`` or SBENCH_CONFIG names the file; the null device is
none. Otherwise two files count: one in the user's configuration folder, and one in the current
directory, which may be somebody else's. As long as the user does not trust that one, nothing but
harmless flags comes from it, and only where the user's own file says nothing. Environment
variables and the command line win.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from serverless_bench.cli.flags.names import spelled, well_known
from serverless_bench.cli.flags.options import HarmlessOption
from serverless_bench.cli.output.terminal import note
from serverless_bench.errors import UsageError
from serverless_bench.user_files import config_folder

SETTINGS: Final = "sbench.toml"
_TOLD: Final = "sbench.settings"
"""Where a command's context keeps the lines about settings files that were shown."""


@dataclass(frozen=True, slots=True)
class _File:
    """A settings file, and what it says for the command at hand."""

    path: Path
    flags: Mapping[str, object]
    """Values by how a flag is spelled."""
    doubt: str
    """Why the file is not trusted; empty if it is."""

    def may_set(self, option: click.Option) -> bool:
        """Tell whether a value of this file counts for a flag."""
        return not self.doubt or isinstance(option, HarmlessOption)


def defaults_for(command: click.Command) -> dict[str, Any]:
    """Return the defaults for ``command``, by parameter name, and say which files they are from.

    Those of a group stand by the names of its commands; a table named after the group is for all
    that have the flag.

    Raises
    ------
    UsageError
        If a file cannot be read, or names a flag that the command does not have.
    """
    context = click.get_current_context(silent=True)
    named = context.find_root().params.get("config") if context else None
    files = [*_files_for(command, named)]
    # What is in doubt comes first, and what comes later wins.
    files.sort(key=lambda file: not file.doubt)
    if context and not context.resilient_parsing:
        _tell(context, command, files)
    if isinstance(command, click.Group):
        return {name: _merged(one, files) for name, one in command.commands.items()}
    return _merged(command, files)


def _files_for(command: click.Command, named: str | None) -> Iterator[_File]:
    """Yield the settings files that there are, the user's own before that of this directory."""
    paths = [config_folder() / SETTINGS, Path(SETTINGS)] if named is None else [Path(named)]
    if named is not None and not paths[0].exists():
        raise UsageError(f"there is no {named}, which --config or SBENCH_CONFIG names")
    for path in paths:
        if named != os.devnull and os.path.exists(path):  # noqa: PTH110
            from serverless_bench.process.trust import doubt
            from serverless_bench.user_files import parse_toml, read_text, refusing

            with refusing(path):
                text = read_text(path)
                data = parse_toml(text)
            here = named is None and not path.is_absolute()
            reason = doubt(path, text) if here else ""
            yield _File(path, _flags_in(path, data, command), reason)


def _flags_in(path: Path, data: Mapping[str, Any], command: click.Command) -> dict[str, object]:
    """Return what a file says for a command, by how flags are spelled."""
    known = {flag for flag, _ in _options(command)}
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    common = {name: value for name, value in data.items() if name not in tables}
    _check_names(path, tables, {name for name in common if spelled(name) not in known})
    own = tables.get(str(command.name), {})
    for name in sorted(own):
        if spelled(name) not in known:
            raise _unknown(path, f"[{command.name}] has no flag {name!r}", sorted(known))
    return {spelled(name): value for name, value in {**common, **own}.items()}


def _tell(context: click.Context, command: click.Command, files: Iterable[_File]) -> None:
    """Say once which files count for a command, and what of them does not."""
    options, parts = [*_options(command)], []
    for file in files:
        given = [(flag, option) for flag, option in options if flag in file.flags]
        ignored = {flag for flag, option in given if not file.may_set(option)}
        if given:
            part = f", but not {', '.join(sorted(ignored))}: {file.doubt} (sbench trust)"
            parts.append(f"{file.path.absolute()}{part if ignored else ''}")
    told = context.meta.setdefault(_TOLD, set())
    if parts and (line := f"settings come from {', and from '.join(parts)}") not in told:
        told.add(line)
        note([line])


def _merged(command: click.Command, files: Iterable[_File]) -> dict[str, Any]:
    """Return what the files say for a command's own flags, by parameter name."""
    from serverless_bench.settings.schema import located

    options, values = dict(_options(command)), dict[str, Any]()
    for file in files:
        with located(str(file.path)):
            for flag, value in file.flags.items():
                if flag in options and file.may_set(options[flag]):
                    values[str(options[flag].name)] = _checked(options[flag], flag, value)
    return values


def _checked(option: click.Option, flag: str, value: object) -> object:
    """Return the default of a flag if it is what a command line could say.

    Raises
    ------
    UsageError
        If it is a table or a date, has characters that cannot be printed, or is no text where
        a path belongs.
    """
    from serverless_bench.job.types import check_text, wrong
    from serverless_bench.settings.job_file import Setting
    from serverless_bench.settings.schema import converted

    setting: Any = converted(Setting, flag, value)
    for one in setting if isinstance(setting, tuple) else (setting,):
        if isinstance(one, str):
            check_text(flag, one)
    if isinstance(setting, tuple) and not option.multiple:
        raise wrong(flag, f"must be one value, got {setting!r}")
    if isinstance(option.type, click.Path) and not isinstance(setting, str):
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
    from serverless_bench.cli.main import COMMANDS, command_names, open_command

    for name in sorted(tables):
        if name not in COMMANDS and name not in command_names():
            what = f"there is no command {name!r} for the table [{name}]"
            raise _unknown(path, what, command_names(), "commands")
    # What stands before a job is no flag.
    shared = well_known() - {"operation"}
    # Most are those of a job; only for others all commands have to be imported.
    if stranger := {name for name in strange if spelled(name) not in shared}:
        commands = map(open_command, command_names())
        everywhere = {flag for command in commands for flag, _ in _options(command)}
        for name in sorted(stranger):
            if spelled(name) not in everywhere:
                raise _unknown(path, f"no command has a flag {name!r}", sorted(everywhere))


def _unknown(path: Path, what: str, known: Iterable[str], kind: str = "flags") -> UsageError:
    return UsageError(f"{path}: {what}", hint=f"known {kind}: {', '.join(known)}")


def _options(command: click.Command) -> Iterator[tuple[str, click.Option]]:
    """Yield the flags of a command, and of the commands in it, by how each is spelled."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name:
            yield spelled(parameter.name), parameter
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from _options(one)
