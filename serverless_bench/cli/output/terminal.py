"""Output on the terminal: results, problems, notes, questions, and a sign of progress."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from io import TextIOWrapper
from typing import Any, Literal

import click

from serverless_bench.base.errors import SbenchError, UsageError
from serverless_bench.base.escaping import columns_of, for_json, for_terminal, is_colored
from serverless_bench.cli.flags.options import spell


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
