"""User's defaults for flags, from ``sbench.toml``.

Flags at the top of the file apply to all commands that have them; flags in a table named after a
command apply to this command. ``--config`` or SBENCH_CONFIG names the file; otherwise it is in the
user's configuration folder. A file in the current folder does not count, because another person
may have written it. Environment variables and the command line override the file.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

from serverless_bench.base.errors import UsageError, check_known, nearest
from serverless_bench.base.user_files import config_folder, parse_toml, read_text, refusing
from serverless_bench.cli.flags.options import FILES, arguments, spelled, variable_of, well_known
from serverless_bench.cli.output.terminal import note

SETTINGS: Final = "sbench.toml"
NONE: Final = "none"
"""Name instead of a file, for no settings."""
_CHOOSE: Final = f"sbench --config {SETTINGS} ... uses it, --config {NONE} ignores it"
_PAGE: Final = 'see "Configuration" in the documentation'
_PREFIX: Final = variable_of("")
_OTHER_VARIABLES: Final = re.compile(
    rf"{_PREFIX}(ALLOW_CODE|CONFIG|FUZZ_.+|IMPORT_CLIENT|LAMBDA_HOST|LOCALSTACK_DIR|PARENT_KEYS"
    r"|STORE_DIR|TEST.*|TRACEBACK|VERSION)$"
)
"""Variables of sbench, and of its tests, that are not those of a command's flags."""
_NOTED: Final = "sbench.settings"
"""Key in the meta data of click's context for the notes about settings files that were printed."""


def defaults_for(command: click.Command) -> dict[str, Any]:
    """Return the defaults for ``command`` by parameter name, and print their file.

    For a group, return the defaults by command name; a table named after the group applies to all
    of its commands that have the flag.

    Raises
    ------
    UsageError
        If the file cannot be read, or sets a flag that the command does not have.
    """
    context = click.get_current_context(silent=True)
    path = _chosen(context.find_root().params.get("config") if context else None)
    if path is None:
        return {}
    flags = _flags_in(path, _read(path), command)
    options = [flag for flag, _ in _options(command)]
    if context and not context.resilient_parsing and not flags.keys().isdisjoint(options):
        _note_once(context, f"settings come from {path.absolute()}")
    origins = context.meta.setdefault(FILES, {}) if context else {}
    if isinstance(command, click.Group):
        members = command.commands.items()
        return {name: _values(member, path, flags, origins) for name, member in members}
    return _values(command, path, flags, origins)


def check_folder(*, is_looking: bool) -> None:
    """Check that nobody expects the settings file of the current folder to count.

    Parameters
    ----------
    is_looking
        Whether the command neither measures nor deletes.

    Raises
    ------
    UsageError
        If the command would use another store, or other functions, than the file names.
    """
    path, own = Path(SETTINGS), config_folder() / SETTINGS
    # As pathlib raises for a folder that must not be entered.
    if not os.path.exists(path) or (os.path.exists(own) and path.samefile(own)):  # noqa: PTH110
        return
    from serverless_bench.job.settings import declared

    data = _read(path)
    tables = [data, *(value for value in data.values() if isinstance(value, dict))]
    given = {spelled(key) for table in tables for key in table}
    named = sorted(given & {spelled(n) for n, (*_, about) in declared().items() if about.decides})
    problem = f"{path.absolute()} does not count, as you have not named it"
    if named and not is_looking:
        raise UsageError(f"{problem}, but it sets {', '.join(named)}", hint=_CHOOSE)
    if data:
        note([f"{problem}: {_CHOOSE}"])


def _chosen(named: str | None) -> Path | None:
    """Return the settings file that counts: the named file, or the user's own; None if none is."""
    if named in (NONE, os.devnull):
        return None
    path = config_folder() / SETTINGS if named is None else Path(named)
    if os.path.exists(path):  # noqa: PTH110 - pathlib raises for a folder that must not be entered
        return path
    if named is None:
        return None
    raise UsageError(f"--config or SBENCH_CONFIG: file {named} does not exist")


def _read(path: Path) -> dict[str, Any]:
    with refusing(path):
        return parse_toml(read_text(path))


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


def _note_once(context: click.Context, line: str) -> None:
    noted = context.meta.setdefault(_NOTED, set())
    if line not in noted:
        noted.add(line)
        note([line])


def _values(
    command: click.Command, path: Path, flags: Mapping[str, object], origins: dict[str, Path]
) -> dict[str, Any]:
    """Return the values in a file for the flags of a command, by parameter name.

    ``origins`` gets the file of each.
    """
    from serverless_bench.job.setting_schema import located

    options, values = dict(_options(command)), dict[str, Any]()
    with located(str(path)):
        for flag in flags.keys() & options.keys():
            name = str(options[flag].name)
            values[name], origins[name] = _checked(options[flag], flag, flags[flag]), path
    return values


def _checked(option: click.Option, flag: str, value: object) -> object:
    """Return the default of a flag if the command line could have the same value.

    Raises
    ------
    UsageError
        If the value is a table or a date, has characters that cannot be printed, or is not text
        although the flag takes a path.
    """
    from serverless_bench.job.setting_schema import Setting, converted
    from serverless_bench.job.types import check_text, wrong

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
    # Most flags are flags of jobs, but for settings that are arguments. All commands are imported
    # only for other flags, as it is slow.
    if rare := {*map(spelled, strange)} - (well_known() - arguments()):
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
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    yield from ((spelled(option.name), option) for option in options if option.name)
    if isinstance(command, click.Group):
        for member in command.commands.values():
            yield from _options(member)
