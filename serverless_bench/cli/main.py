"""Entry point of ``sbench``: find the command, turn errors into a line and an exit code.

Each command has a separate module that is imported when the command is called, so that
``sbench --help`` does not wait for NumPy and the plotting code.
"""

import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import INTERRUPTED, OUTPUT_UNREAD, SbenchError, shortage
from serverless_bench.base.plugins import Registry
from serverless_bench.cli.flags.options import message_of, spelled
from serverless_bench.cli.output.terminal import (
    ALL,
    Group,
    aside,
    complain,
    in_sections,
    open_streams,
)
from serverless_bench.cli.process import end_undisturbed, interruptible
from serverless_bench.features import COMMANDS as FEATURES
from serverless_bench.features import LINES, full
from serverless_bench.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Run": {
        "write": "Write objects from many functions and report the throughput.",
        "read": "Read objects back, compare every byte and report the throughput.",
        "mixed": "Perform operations of several kinds by weight, and report on each kind.",
        "resume": "Resume a run after its driver died or functions were lost.",
        "clean": "Delete the objects of a run, and only those.",
    },
    "Results": {
        "ls": "List runs, the most recent one first.",
        "report": "Report on a run directory, finished or not.",
    },
    "Compare": {},
    "Stores": {
        "store": "Keep the embedded store running between commands, or empty it.",
    },
    "AWS": {},
}
"""Help lines of the built-in commands, by group, in the order in which a new user needs them."""
for _name, _command in FEATURES.items():
    _lines = [*GROUPS.get(_command.group, {}).items()]
    _at = 1 + next((at for at, line in enumerate(_lines) if line[0] == _command.after), -1)
    GROUPS[_command.group] = dict([*_lines[:_at], (_name, LINES[_name]), *_lines[_at:]])
COMMANDS: Final = {name: line for group in GROUPS.values() for name, line in group.items()}
_LOOKING: Final = frozenset(
    {*GROUPS["Results"], *(name for name, command in FEATURES.items() if command.looks)}
)
"""Commands that neither measure nor delete: settings of the current folder do not stop them."""
LEFT: Final = "sbench.left"
"""Key in the meta data of click's context for the exit code of a series that leaves objects."""
_TABLES: Final[Registry[Mapping[str, tuple[str, str]]]] = Registry("commands", {})
"""Tables of commands from other packages: the help line and ``module:attribute`` by name."""
_FIRST: Final = """\
On this machine, without an account:         sbench demo
On your own store, keys in the environment:  sbench write --endpoint-url URL --bucket NAME
On AWS, with functions of your account:      sbench aws stack
"""
"""How to begin, for a new user who types ``sbench`` alone."""
_RARELY: Final = (50_000, 20, 20)
"""Thresholds of the garbage collector, in objects and in collections."""


@cache
def _tables() -> dict[str, Mapping[str, tuple[str, str]]]:
    """Return the tables of other packages by name; the entry points are read only once."""
    return {table: _TABLES.load(table) for table in _TABLES.names()}


def groups() -> dict[str, Mapping[str, str]]:
    """Return the help lines of all commands by group, with other packages at the end."""
    others = {
        table.capitalize(): {name: line for name, (line, _) in commands.items()}
        for table, commands in _tables().items()
    }
    return {title: lines for title, lines in {**GROUPS, **others}.items() if lines}


def command_names() -> list[str]:
    """Return the names of all commands in the order of the help, built-in commands first."""
    return [name for group in groups().values() for name in group]


def place_of(name: str) -> str:
    """Return the place of a command as ``module:attribute``, without importing it.

    Raises
    ------
    KeyError
        If neither sbench nor another package has a command of this name.
    """
    if name in FEATURES:
        return full(FEATURES[name].place)
    if name in COMMANDS:
        return f"serverless_bench.cli.commands.{name}:command"
    # Read the entry points only for a name that is not built in: reading them is slow.
    return {key: at for table in _tables().values() for key, (_, at) in table.items()}[name]


def open_command(name: str) -> click.Command:
    """Import the module of a command and return the command; raise as ``place_of``."""
    command: click.Command = resolve_name(place_of(name))
    return command


class _Unread(click.ClickException):
    """The reader of our output has closed it, as in ``sbench ls | head -1``."""

    exit_code = OUTPUT_UNREAD


@contextmanager
def _ending() -> Iterator[None]:
    """Convert exceptions that click would turn into exit code 1 or print a line for."""
    try:
        yield
    except (BrokenPipeError, SystemExit) as exc:
        # Rich raises SystemExit for a broken pipe.
        if isinstance(exc, SystemExit) and not isinstance(exc.__context__, BrokenPipeError):
            raise
        raise _Unread("") from exc
    except KeyboardInterrupt as exc:
        raise click.Abort from exc


class _Commands(Group):
    """A group that imports a command when it is called."""

    first_lines = _FIRST

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return command_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, with the user's defaults for the flags."""
        if cmd_name not in COMMANDS and cmd_name not in command_names():
            return None
        from serverless_bench.cli.flags.defaults import check_variables, defaults_for

        command = in_sections(open_command(cmd_name))
        if not ctx.resilient_parsing:
            check_variables(command)
        ctx.default_map = {cmd_name: defaults_for(command)}
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, unless the current folder has settings that seem to be meant."""
        name, command, rest = super().resolve_command(ctx, args)
        wants_help = {*ctx.help_option_names} & {*rest}
        if command and not (wants_help or ctx.resilient_parsing or ctx.params["config"]):
            from serverless_bench.cli.flags.defaults import check_folder

            check_folder(is_looking=name in _LOOKING)
        return name, command, rest

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the arguments; this may print the help."""
        with _ending():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _ending():
            return ctx.meta.get(LEFT, super().invoke(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands by group."""
        for title, commands in groups().items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands with this prefix; click would import all modules for their help."""
        from click.shell_completion import CompletionItem

        flags = click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=line)
            for group in groups().values()
            for name, line in group.items()
            if name.startswith(incomplete)
        ] + flags


@click.group(
    cls=_Commands,
    context_settings={
        "token_normalize_func": spelled,
        "help_option_names": ["-h", "--help", ALL],
        "max_content_width": 100,
    },
    epilog="Set defaults for flags in sbench.toml or in the environment, as SBENCH_<FLAG>.",
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False),
    envvar="SBENCH_CONFIG",
    help="Settings file, or none.  [default: sbench.toml in your configuration folder]",
)
@click.version_option(__version__, prog_name="sbench")
def commands(config: str | None) -> None:
    """Measure what throughput N functions really get from object storage.

    `sbench demo` needs nothing but this machine.
    """
    # The settings files are read before the flags of the command are parsed.


def start() -> int:
    """Run the command of this process, and return the exit code."""
    # Imports create thousands of permanent objects. Scanning them many times, and a last time at
    # exit, takes more time than the collected memory is worth.
    gc.set_threshold(*_RARELY)
    open_streams()
    code = main()
    end_undisturbed()
    gc.freeze()
    # Python would flush closed streams again at exit, and print a traceback.
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    with interruptible() as interrupt:
        try:
            code = commands.main(args=argv, prog_name="sbench", standalone_mode=False)
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as exc:  # noqa: BLE001 - printed
            interrupt.ignore()
            return _print_error(exc)
        interrupt.ignore()
    return int(code or 0)


def _words_to(context: click.Context) -> str:
    """Return the words that call a command; click's command path includes arguments of `plan`."""
    before = "" if context.parent is None else f"{_words_to(context.parent)} "
    return f"{before}{context.info_name}"


def _print_error(exc: BaseException) -> int:
    """Print the error that ended the command, and return the exit code."""
    if isinstance(exc, BrokenPipeError | _Unread):
        return OUTPUT_UNREAD
    if isinstance(exc, KeyboardInterrupt | click.Abort):
        # The empty line keeps the message off the line with the terminal's ^C.
        aside("", "sbench: interrupted")
        return INTERRUPTED
    if isinstance(exc, click.ClickException):
        usage = exc.ctx if isinstance(exc, click.UsageError) else None
        hint = f"{_words_to(usage)} --help" if usage else ""
        complain(SbenchError(message_of(exc), hint=hint))
        return int(exc.exit_code)
    error = exc if isinstance(exc, SbenchError) else shortage(exc)
    if error is None:
        if os.environ.get("SBENCH_TRACEBACK"):
            import traceback

            traceback.print_exception(exc)
        hint = "this is a bug in sbench; set SBENCH_TRACEBACK=1 to see the traceback"
        error = SbenchError(f"{type(exc).__name__}: {exc}", hint=hint)
    return complain(error)


if __name__ == "__main__":
    sys.exit(start())
