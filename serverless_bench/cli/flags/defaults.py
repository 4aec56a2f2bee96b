"""User's defaults for flags, from ``sbench.toml``.

Flags at the top of a file apply to all commands that have them; flags in a table named after a
command apply to this command. ``--config`` or SBENCH_CONFIG names the file; the null device
disables settings files. By default there are two files: in the user's configuration folder, and
in the current directory, where another person may have written it. Until the user trusts the
latter, only harmless flags are taken from it, and only if the file in the configuration folder
does not set them. Environment variables and the command line override both files.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from serverless_bench.cli.flags.names import FILES, spelled, well_known
from serverless_bench.cli.flags.options import HarmlessOption, variable_of
from serverless_bench.cli.output.terminal import note
from serverless_bench.errors import UsageError, check_known, nearest
from serverless_bench.user_files import config_folder

SETTINGS: Final = "sbench.toml"
_PAGE: Final = "docs/configuration.md describes the file"
_PREFIX: Final = variable_of("")
_OTHER_VARIABLES: Final = re.compile(
    rf"{_PREFIX}(ALLOW_CODE|CONFIG|FUZZ_.+|LAMBDA_HOST|LOCALSTACK_DIR|PARENT_KEYS|STORE_DIR|TEST.*"
    r"|TRACEBACK|VERSION)$"
)
"""Variables of sbench, and of its tests, that are not those of a command's flags."""
_NOTED: Final = "sbench.settings"
"""Key in the meta data of click's context for the notes about settings files that were printed."""


class _File(NamedTuple):
    """Settings file with its flags for the current command."""

    path: Path
    flags: Mapping[str, object]
    """Values by the spelling of the flag."""
    doubt: str
    """Reason for not trusting the file; empty if it is trusted."""

    def may_set(self, option: click.Option) -> bool:
        """Return whether this file may set a flag."""
        return not self.doubt or isinstance(option, HarmlessOption)


def defaults_for(command: click.Command) -> dict[str, Any]:
    """Return the defaults for ``command`` by parameter name, and print their source files.

    For a group, return the defaults by command name; a table named after the group applies to all
    of its commands that have the flag.

    Raises
    ------
    UsageError
        If a file cannot be read, or sets a flag that the command does not have.
    """
    context = click.get_current_context(silent=True)
    named = context.find_root().params.get("config") if context else None
    files = [*_files_for(command, named)]
    # Untrusted files go first, because later files override the previous files.
    files.sort(key=lambda file: not file.doubt)
    if context and not context.resilient_parsing:
        _note_sources(context, command, files)
    origins = context.meta.setdefault(FILES, {}) if context else {}
    if isinstance(command, click.Group):
        return {name: _merged(member, files, origins) for name, member in command.commands.items()}
    return _merged(command, files, origins)


def _files_for(command: click.Command, named: str | None) -> Iterator[_File]:
    """Yield the existing settings files, from the configuration folder to the current directory."""
    paths = [config_folder() / SETTINGS, Path(SETTINGS)] if named is None else [Path(named)]
    if named is not None and not paths[0].exists():
        raise UsageError(f"--config or SBENCH_CONFIG: file {named} does not exist")
    for path in paths:
        if named != os.devnull and os.path.exists(path):  # noqa: PTH110
            from serverless_bench.process.trust import doubt
            from serverless_bench.user_files import parse_toml, read_text, refusing

            with refusing(path):
                text = read_text(path)
                data = parse_toml(text)
            is_local = named is None and not path.is_absolute()
            reason = doubt(path, text) if is_local else ""
            yield _File(path, _flags_in(path, data, command), reason)


def _flags_in(path: Path, data: Mapping[str, Any], command: click.Command) -> dict[str, object]:
    """Return the values in a file for a command, by the spelling of the flag."""
    known_flags = {flag for flag, _ in _options(command)}
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    common = {name: value for name, value in data.items() if name not in tables}
    _check_names(path, tables, {name for name in common if spelled(name) not in known_flags})
    own = tables.get(str(command.name), {})
    check_known(
        sorted(map(spelled, own)),
        known_flags,
        f"{path}: [{command.name}] has no flag",
        otherwise=_PAGE,
    )
    return {spelled(name): value for name, value in {**common, **own}.items()}


def _note_sources(context: click.Context, command: click.Command, files: Iterable[_File]) -> None:
    """Print once which files set defaults for a command, and which of their flags are ignored."""
    options, parts = [*_options(command)], []
    for file in files:
        given = [(flag, option) for flag, option in options if flag in file.flags]
        ignored = {flag for flag, option in given if not file.may_set(option)}
        if given:
            part = f", but not {', '.join(sorted(ignored))}: {file.doubt} (sbench trust)"
            parts.append(f"{file.path.absolute()}{part if ignored else ''}")
    noted = context.meta.setdefault(_NOTED, set())
    if parts and (line := f"settings come from {', and from '.join(parts)}") not in noted:
        noted.add(line)
        note([line])


def _merged(
    command: click.Command, files: Iterable[_File], origins: dict[str, Path]
) -> dict[str, Any]:
    """Return the values in the files for the flags of a command, by parameter name.

    ``origins`` gets the file of each.
    """
    from serverless_bench.settings.schema import located

    options, values = dict(_options(command)), dict[str, Any]()
    for file in files:
        with located(str(file.path)):
            for flag, value in file.flags.items():
                if flag in options and file.may_set(options[flag]):
                    name = str(options[flag].name)
                    values[name], origins[name] = _checked(options[flag], flag, value), file.path
    return values


def _checked(option: click.Option, flag: str, value: object) -> object:
    """Return the default of a flag if the command line could have the same value.

    Raises
    ------
    UsageError
        If the value is a table or a date, has characters that cannot be printed, or is not text
        although the flag takes a path.
    """
    from serverless_bench.job.types import check_text, wrong
    from serverless_bench.settings.job_file import Setting
    from serverless_bench.settings.schema import converted

    setting: Any = converted(Setting, flag, value)
    for item in setting if isinstance(setting, tuple) else (setting,):
        if isinstance(item, str):
            check_text(flag, item)
    if isinstance(setting, bool) and not option.is_flag:
        raise wrong(flag, "must not be true or false")
    if isinstance(setting, tuple) and not option.multiple:
        raise wrong(flag, f"must be one value, got {setting!r}")
    if isinstance(option.type, click.Path) and not isinstance(setting, str):
        raise wrong(flag, f"must be text, got {setting!r}")
    return setting


def _check_names(path: Path, tables: Iterable[str], strange: Iterable[str]) -> None:
    """Check that tables are named after commands, and that top-level flags exist.

    Parameters
    ----------
    path
        Path of the file.
    tables
        Names of the tables in it.
    strange
        Top-level flags that the current command does not have.

    Raises
    ------
    UsageError
        If a table or a flag is unknown.
    """
    from serverless_bench.cli.main import COMMANDS, command_names

    # Read the entry points only for a table that is not built in: reading them is slow.
    if unknown := sorted(set(tables) - COMMANDS.keys()):
        check_known(unknown, command_names(), f"{path}: there is no command for the table")
    # Most flags are flags of jobs; their operation is an argument rather than a flag. All commands
    # are imported only for other flags, as it is slow.
    if rare := {*map(spelled, strange)} - (well_known() - {"operation"}):
        flags = {flag for flag, _ in _all_options()}
        check_known(sorted(rare), flags, f"{path}: no command has a flag", otherwise=_PAGE)


@cache
def _all_options() -> list[tuple[str, click.Option]]:
    from serverless_bench.cli.main import command_names, open_command

    return [option for name in command_names() for option in _options(open_command(name))]


def check_variables(command: click.Command) -> None:
    """Check the names of the variables that start with SBENCH_.

    A name that is almost a flag's is an error, because the flag would silently have its default.
    All further names are noted, because another program may use them.

    Raises
    ------
    UsageError
        If a variable has a misspelled name.
    """
    given = {name for name in os.environ if name.startswith(_PREFIX)}
    own = {option.envvar for _, option in _options(command)}
    if rare := {name for name in given - own if not _OTHER_VARIABLES.match(name)}:
        rare -= set(map(variable_of, well_known()))
    flags = {flag for flag, option in _all_options() if option.envvar} if rare else ()
    for name in sorted(rare - set(map(variable_of, flags))):
        problem = f"{name} is not a variable of sbench"
        if close := nearest(name.removeprefix(_PREFIX).lower(), flags, least=0.75):
            raise UsageError(problem, hint=f"did you mean {variable_of(close)}?")
        note([f"{problem}, and is ignored"])


def _options(command: click.Command) -> Iterator[tuple[str, click.Option]]:
    """Yield the flags of a command and of its subcommands, with their spelling."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name:
            yield spelled(parameter.name), parameter
    if isinstance(command, click.Group):
        for member in command.commands.values():
            yield from _options(member)
