"""``sbench``: finds the command, and turns errors into one line and an exit code.

Each command lives in a module of its own and is imported when it is called, so that
``sbench --help`` does not wait for arrays and plots.
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

from serverless_bench.cli.flags.names import spelled
from serverless_bench.cli.interrupts import end_undisturbed, interruptible
from serverless_bench.cli.output.help import Group, in_sections
from serverless_bench.cli.output.terminal import aside, complain, open_streams
from serverless_bench.errors import INTERRUPTED, OUTPUT_UNREAD, SbenchError, shortage
from serverless_bench.plugins import Registry
from serverless_bench.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS: Final = {
    "Run": {
        "demo": "Write, read, report and plot, small, on the embedded store.",
        "write": "Write objects from many functions and report the throughput.",
        "read": "Read objects back, compare every byte and report the throughput.",
        "mixed": "Perform operations of several kinds by weight, and report on each kind.",
        "contend": "Write to shared keys on conditions, and check that no write is lost.",
        "array": "Write arrays through an array library, append to them, or read them back.",
        "call": "Call a function of your own in many functions, and report what it did.",
        "run": "Run the stages of a job file, and delete what they wrote.",
        "convert": "Make a job file of a configuration of warp or sai3-bench.",
        "resume": "Go on with a run whose driver died, or that lost functions.",
        "clean": "Delete the objects of a run, and nothing else.",
        "trust": "Have a settings file of this folder count as a whole.",
    },
    "Look": {
        "ls": "List runs, the most recent one first.",
        "report": "Report on a run directory, finished or not.",
        "check": "Check that a run's figures are possible, and what makes them hard to repeat.",
        "plot": "Draw a run, or a write and its read, into one picture.",
        "import": "Read results of PyWren, Lithops, warp or sai3-bench, and report on them.",
        "export": "Write the operations of a run for warp, PyWren or a table.",
    },
    "Compare": {
        "ab": "Run two jobs in turns and compare them.",
        "compare": "Say whether one set of runs is faster than another, slower, or the same.",
        "scale": "Run a job with more and more functions, and fit how throughput scales.",
        "history": "Record runs in a folder for git, and check that new ones are as good.",
        "limit": "Find the highest rate, or number of functions, that holds an objective.",
    },
    "Stores": {
        "store": "Keep the embedded store running between commands, or empty it.",
    },
    "AWS": {
        "aws": "Write a stack with functions of several sizes and processors, for SAM to deploy.",
        "plan": "Say what a job on AWS Lambda would take, and what it would cost.",
        "doctor": "Check this machine, the account and the stack before a run.",
        "worker": "Run functions here for drivers elsewhere, on any machine or container.",
    },
}
"""The help line of each command of the core, in the order of a first visit."""
COMMANDS: Final = {name: line for group in GROUPS.values() for name, line in group.items()}
_MODULES: Final = {"import": "import_"}
"""Modules whose names differ from their commands', which are keywords."""
_TABLES: Final[Registry[Mapping[str, tuple[str, str]]]] = Registry("commands", {})
"""Commands of other packages, in tables: the help line of each, and its ``module:attribute``."""
_RARELY: Final = (50_000, 20, 20)
"""Thresholds of the garbage collector, in objects and in collections."""


@cache
def _tables() -> dict[str, Mapping[str, tuple[str, str]]]:
    """Return the tables of other packages by name; entry points are looked through once."""
    return {table: _TABLES.load(table) for table in _TABLES.names()}


def groups() -> dict[str, Mapping[str, str]]:
    """Return help lines of all commands by their groups, those of other packages last."""
    others = {
        table.capitalize(): {name: line for name, (line, _) in commands.items()}
        for table, commands in _tables().items()
    }
    return {**GROUPS, **others}


def command_names() -> list[str]:
    """Return all commands, the core's first, in the order of a first visit."""
    return [name for group in groups().values() for name in group]


def open_command(name: str) -> click.Command:
    """Return a command; its module is imported for it.

    Raises
    ------
    KeyError
        If nobody has it.
    """
    place = f"serverless_bench.cli.commands.{_MODULES.get(name, name)}:command"
    if name not in COMMANDS:
        # Entry points are looked at only for a name that the core does not have.
        tables = _tables().values()
        place = {own: place for table in tables for own, (_, place) in table.items()}[name]
    command: click.Command = resolve_name(place)
    return command


class _Unread(click.ClickException):
    """Nobody reads our output any more: `sbench ls | head -1`."""

    exit_code = OUTPUT_UNREAD


@contextmanager
def _ending() -> Iterator[None]:
    """Keep from click what it would make an exit with code 1 of, or write a line for first."""
    try:
        yield
    except (BrokenPipeError, SystemExit) as exc:
        # Rich makes an exit of it, too.
        if isinstance(exc, SystemExit) and not isinstance(exc.__context__, BrokenPipeError):
            raise
        raise _Unread("") from exc
    except KeyboardInterrupt as exc:
        raise click.Abort from exc


class _Commands(Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a first visit."""
        del ctx
        return command_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, with the user's own defaults for its flags."""
        if cmd_name not in COMMANDS and cmd_name not in command_names():
            return None
        from serverless_bench.cli.flags.defaults import defaults_for

        command = in_sections(open_command(cmd_name))
        # A command that brings its own takes none from a file.
        if "default_map" not in command.context_settings:
            ctx.default_map = {cmd_name: defaults_for(command)}
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:  # noqa: ANN401 - click's
        """Parse the arguments; this may print the help."""
        with _ending():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _ending():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, in groups."""
        del ctx
        for title, commands in groups().items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands that begin so; click would import all of them for their help."""
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
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog="Defaults for every flag may stand in sbench.toml or in SBENCH_<FLAG>.",
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False),
    envvar="SBENCH_CONFIG",
    help="Settings file; without it sbench.toml in your configuration folder, and here.",
)
@click.version_option(__version__, prog_name="sbench")
def commands(config: str | None) -> None:
    """Measure what throughput N functions really get from object storage.

    `sbench demo` needs nothing but this machine.
    """
    # It is read before the command's own flags are.
    del config


def start() -> int:
    """Run the command of this process, and return its exit code."""
    # Imports make thousands of objects that stay: the collector would look through them again
    # and again, and once more when the process ends, which costs more than they take.
    gc.set_threshold(*_RARELY)
    open_streams()
    code = main()
    end_undisturbed()
    gc.freeze()
    # Python would say once more, with a traceback, what nobody reads.
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    with interruptible() as interrupt:
        try:
            code = commands.main(args=argv, prog_name="sbench", standalone_mode=False)
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as exc:  # noqa: BLE001 - told
            interrupt.ignore()
            return _told(exc)
        interrupt.ignore()
    return int(code or 0)


def _words_to(context: click.Context) -> str:
    """Return the words that lead to a command; click's own have the arguments of `plan`, too."""
    before = "" if context.parent is None else f"{_words_to(context.parent)} "
    return f"{before}{context.info_name}"


def _told(exc: BaseException) -> int:
    """Say what ended the command, and return the exit code for that."""
    if isinstance(exc, BrokenPipeError | _Unread):
        return OUTPUT_UNREAD
    if isinstance(exc, KeyboardInterrupt | click.Abort):
        # Not behind the ^C of a terminal.
        aside("", "sbench: interrupted")
        return INTERRUPTED
    if isinstance(exc, click.ClickException):
        usage = exc.ctx if isinstance(exc, click.UsageError) else None
        hint = f"{_words_to(usage)} --help" if usage else ""
        # Some of click's messages have several lines.
        complain(SbenchError(" ".join(exc.format_message().split()), hint=hint))
        return int(exc.exit_code)
    error = exc if isinstance(exc, SbenchError) else shortage(exc)
    if error is None:
        if os.environ.get("SBENCH_TRACEBACK"):
            import traceback

            traceback.print_exception(exc)
        hint = "this is a bug; SBENCH_TRACEBACK=1 shows where"
        error = SbenchError(f"{type(exc).__name__}: {exc}", hint=hint)
    return complain(error)


if __name__ == "__main__":
    sys.exit(start())
