"""Output on the terminal: results, problems, notes, questions, a sign of progress; exit codes.

Help texts have their flags in sections, the most common flags first. docs/exit-codes.md documents
the exit codes for users.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from enum import IntEnum
from io import TextIOWrapper
from typing import Any, Final, Literal, TypeVar

import click

from serverless_bench.base import errors
from serverless_bench.base.errors import SbenchError, UsageError, nearest
from serverless_bench.base.escaping import columns_of, for_json, for_terminal, is_colored
from serverless_bench.cli.flags.options import SettingOption, spell
from serverless_bench.job.defaults import DEFAULT_EXECUTOR, REMOTE


class ExitCode(IntEnum):
    """Exit codes of commands. Exceptions define their exit codes in ``errors.py``."""

    OK = 0
    INCOMPLETE = errors.INCOMPLETE
    """Functions failed or were lost; the report covers the other functions."""
    CORRUPT = errors.CORRUPT
    """The store returned data that differs from the written data, or lost a write."""
    SLOWER = 9
    """A comparison found a side slower than the baseline."""
    UNDECIDED = 10
    """A comparison could show neither a difference nor equality."""
    WITHHELD = errors.WITHHELD
    """The records are contradictory or physically impossible, so there is no headline."""
    UNFIT = 13
    """``doctor`` found a problem that would make a run fail, ``qualify`` an unsafe store."""
    NEVER_HELD = 14
    """``limit``: the objective does not hold even at the lowest level."""
    NO_LIMIT = 15
    """``limit``: the objective holds at the highest level that was allowed."""


MANY: Final = 10
"""Number of flags from which a command has sections instead of a plain list."""
ALL: Final = "--help-all"
_WORDS: Final = "sbench.words"
"""Key in the meta data of click's context for the words after the command."""
REST: Final = "Help"
"""Section of the flags that are in no table, such as ``--help``."""

C = TypeVar("C", bound=click.Command)
SECTIONS: Final = {
    "Workload": "from number mb size objects key-file key read-times duration mix"
    " operations range-size split threads rate arrivals sizes layout compressibility"
    " duplication warm-up seed",
    "Target": "trust bucket endpoint-url create-bucket prefix region addressing",
    "Transfer": "client part-size connections verify timeout retries block-size stat min-split-size"
    " client-option",
    "Functions": "executor concurrency deadline",
    REMOTE: "",
    "Output": "name format full run-dir dry-run keep yes output progress",
}
"""Flags of each section, in their order: those of jobs, and of the commands of the core."""
_FIRST: Final = "sbench.first"
_LAST: Final = "sbench.last"
"""Attributes of a command with the sections that it declares."""


def sections(
    first: Mapping[str, str] | None = None, *, last: Mapping[str, str] | None = None
) -> Callable[[C], C]:
    """Declare the sections of a command's own flags, or of flags with another meaning there.

    Parameters
    ----------
    first
        Flags by section, before those of ``SECTIONS``: new sections begin the help, and flags of
        another one begin it.
    last
        The same, at the end: new sections stand before the output.
    """

    def declare(command: C) -> C:
        vars(command).update({_FIRST: first or {}, _LAST: last or {}})
        return command

    return declare


def _tables(command: click.Command) -> dict[str, list[str]]:
    """Return the flags of each section of a command, in their order."""
    first, last = vars(command).get(_FIRST, {}), vars(command).get(_LAST, {})
    own = " ".join((*first.values(), *last.values())).split()
    *titles, output = SECTIONS
    return {
        title: [
            *first.get(title, "").split(),
            *(name for name in SECTIONS.get(title, "").split() if name not in own),
            *last.get(title, "").split(),
        ]
        for title in dict.fromkeys((*first, *titles, *last, output))
    }


def sectioned(command: click.Command) -> list[tuple[str, list[click.Option]]]:
    """Return the flags of a command by section, without empty sections."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    named = {max(option.opts, key=len).removeprefix("--"): option for option in options}
    tables = {
        title: [named.pop(name) for name in names if name in named]
        for title, names in _tables(command).items()
    }
    for name, option in [*named.items()]:
        if isinstance(option, SettingOption):
            others = tables[option.section]
            flags = {f"--{flag}" for flag in option.after.split()}
            places = (n for n, other in enumerate(others, 1) if flags.intersection(other.opts))
            others.insert(max(places, default=len(others)), named.pop(name))
    tables[REST] = list(named.values())
    return [(title, options) for title, options in tables.items() if options]


class Command(click.Command):
    """Command with a help text that has sections of flags."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the command; this may print the help."""
        ctx.meta[_WORDS] = args[:]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an error names the flag, the variable or the file of a setting."""
        try:
            return super().invoke(ctx)
        except SbenchError as exc:
            spell(exc)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags, in sections if there are at least ``MANY``."""
        if len(self.params) < MANY:
            super().format_options(ctx, formatter)
            return
        tables = dict(sectioned(self))
        hidden = tables.pop(REMOTE, []) if self._is_local(ctx) else []
        if (help_option := self.get_help_option(ctx)) is not None:
            tables[REST] = [*tables.get(REST, []), help_option]
        for title, options in tables.items():
            records = [record for option in options if (record := option.get_help_record(ctx))]
            with formatter.section(title):
                formatter.write_dl(records)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{ALL} shows {len(hidden)} more flags, for remote functions.")

    def _is_local(self, ctx: click.Context) -> bool:
        """Return whether the executor in use runs functions on this machine."""
        words = ctx.meta[_WORDS]
        executor = next((param for param in self.params if param.name == "executor"), None)
        if executor is None or ALL in words:
            return False
        given = self.make_parser(ctx).parse_args(words[:])[0]
        name, _ = executor.consume_value(ctx, given)
        if name == DEFAULT_EXECUTOR:
            return True
        from serverless_bench.executors import info_of

        with suppress(SbenchError):
            return not info_of(str(name)).remote
        return False


class Group(click.Group):
    """Group that prints its help if called alone, and suggests names for an unknown command."""

    command_class = Command
    first_lines = ""
    """Text before the help of a group that is called alone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the group; without any, print the help and end like a mistake."""
        if not args and not ctx.resilient_parsing:
            # An error of click would put the whole help into one line.
            click.echo(f"{self.first_lines}\n{ctx.get_help()}".lstrip(), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or fail with suggestions for an unknown name."""
        name = str(args[0])
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if name.startswith("-"):
                raise
            spelled = ctx.token_normalize_func(name) if ctx.token_normalize_func else name
            close = nearest(spelled, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}.{f' Did you mean {close!r}?' if close else ''}")


def in_sections(command: click.Command) -> click.Command:
    """Return a copy of the command with sections in its help; groups are returned unchanged."""
    if isinstance(command, (click.Group, Command)):
        return command
    copy = Command(command.name)
    # click keeps the help flag of the first context, which may lack the names of sbench's.
    vars(copy).update(vars(command), _help_option=None)
    return copy


def say(*lines: str, err: bool = False, fg: str | None = None) -> None:
    """Print lines with control characters escaped.

    Parameters
    ----------
    lines
        Lines to print; line breaks in them are escaped. Results are wrapped to fit a terminal.
    err
        Whether to print to standard error, for text that is not a result. Errors of writing are
        ignored then.
    fg
        Colour on a terminal.
    """
    from serverless_bench.report.text_table import wrapped

    colored = fg is not None and is_colored(sys.stderr if err else sys.stdout)
    with suppress(OSError) if err else nullcontext():
        for line in lines:
            for text in wrapped(for_terminal(line), sys.maxsize if err else width()):
                # Without a colour, click would end the line with the code for none.
                click.echo(click.style(text, fg=fg) if colored else text, err=err)


def say_json(document: object) -> None:
    """Print a JSON document with control characters escaped; its content does not change."""
    import orjson

    text = document if isinstance(document, str) else orjson.dumps(document).decode()
    click.echo(for_json(text))


def show(style: str, document: Any, lines: Iterable[str]) -> None:
    """Print a result as a JSON document, as a JSON document per item, or as lines."""
    if style == "json":
        say_json(document)
    elif style == "jsonl":
        for item in [document] if isinstance(document, Mapping) else document:
            say_json(item)
    else:
        say(*lines)


def width() -> int:
    """Return the columns of the terminal on standard output; a file has no limit."""
    return columns_of(sys.stdout)


def open_streams() -> None:
    """Open the null device for standard streams that are closed.

    Otherwise the next file that the process opens, for instance of a run or of the store, would
    get the number of a standard stream, and printed text would be written into it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # The operating system assigns the lowest free number, which is the closed stream's.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding != "utf-8":
        # A character that the terminal's encoding lacks must not make the report fail.
        sys.stdout.reconfigure(errors="backslashreplace")


def aside(*lines: str) -> None:
    """Print lines to standard error."""
    say(*lines, err=True)


def note(texts: Iterable[str]) -> None:
    """Print notes to standard error; use them for information besides results and problems."""
    for text in texts:
        aside(f"note: {text}")


def complain(error: SbenchError, where: str = "") -> int:
    """Print an error, with flags in place of settings, and return the exit code."""
    spell(error)
    aside(f"sbench: {where}{error}")
    if error.hint:
        aside(f"hint: {error.hint}")
    return error.exit_code


def confirmed(what: str, *, hint: str) -> bool:
    """Ask the user to confirm an action.

    Parameters
    ----------
    what
        Action in the infinitive, as in "delete the objects of sbench-runs/w".
    hint
        Command line that needs no confirmation.

    Raises
    ------
    UsageError
        If stdin is not a terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"cannot ask whether to {what}: stdin is not a terminal", hint=hint)
    if click.confirm(for_terminal(f"{what[0].upper()}{what[1:]}?"), err=True):
        return True
    aside("cancelled")
    return False


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show the current activity on a terminal; elsewhere, skip the import of rich."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    colors: Literal["auto"] | None = "auto" if is_colored(sys.stderr) else None
    with Console(stderr=True, color_system=colors).status(Text(for_terminal(what))):
        yield
