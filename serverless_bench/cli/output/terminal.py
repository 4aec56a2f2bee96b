"""Output on the terminal: results, problems, notes, questions, and a sign of progress."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import TextIOWrapper

import click

from serverless_bench.cli.flags.names import spell
from serverless_bench.errors import SbenchError, UsageError
from serverless_bench.escaping import for_json, for_terminal


def say(*lines: str, err: bool = False, fg: str | None = None) -> None:
    """Print lines with control characters escaped.

    Parameters
    ----------
    lines
        Lines to print; line breaks in them are escaped.
    err
        Whether to print to standard error, for text that is not a result. Errors of writing are
        ignored then.
    fg
        Colour on a terminal.
    """
    with suppress(OSError) if err else nullcontext():
        for line in lines:
            click.secho(for_terminal(line), err=err, fg=fg)


def say_json(document: object) -> None:
    """Print a JSON document with control characters escaped; its content does not change."""
    import orjson

    text = document if isinstance(document, str) else orjson.dumps(document).decode()
    click.echo(for_json(text))


def show(style: str, document: object, lines: Iterable[str]) -> None:
    """Print a result as a JSON document if the style is ``json``, otherwise as lines."""
    if style == "json":
        say_json(document)
    else:
        say(*lines)


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

    with Console(stderr=True).status(Text(for_terminal(what))):
        yield
