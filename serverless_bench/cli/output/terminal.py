"""What is said besides results: problems, notes, questions, and that work goes on."""

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
    """Print lines; what a terminal would obey is shown in place of it.

    Parameters
    ----------
    lines
        Each is one, whatever is in it.
    err
        Whether they are no result, and go to standard error, if anybody hears it: nothing
        fails for that.
    fg
        Colour, on a terminal.
    """
    with suppress(OSError) if err else nullcontext():
        for line in lines:
            click.secho(for_terminal(line), err=err, fg=fg)


def say_json(document: object) -> None:
    """Print a JSON document; it stays what it is, and is safe to look at."""
    import orjson

    text = document if isinstance(document, str) else orjson.dumps(document).decode()
    click.echo(for_json(text))


def show(style: str, document: object, lines: Iterable[str]) -> None:
    """Print a result: its document if the style is ``json``, or else its lines."""
    if style == "json":
        say_json(document)
    else:
        say(*lines)


def open_streams() -> None:
    """Have something open where standard input, output or errors are closed.

    Otherwise the next file that is opened, of a run or of the store, would take their place,
    and what is printed would go there.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free: this one.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding != "utf-8":
        # A name that the terminal's alphabet lacks must not cost the report it stands in.
        sys.stdout.reconfigure(errors="backslashreplace")


def aside(*lines: str) -> None:
    """Say something on standard error."""
    say(*lines, err=True)


def note(texts: Iterable[str]) -> None:
    """Say what is no result, and no problem either."""
    for text in texts:
        aside(f"note: {text}")


def complain(error: SbenchError, where: str = "") -> int:
    """Say what is wrong, with flags in place of settings; return the error's exit code."""
    spell(error)
    aside(f"sbench: {where}{error}")
    if error.hint:
        aside(f"hint: {error.hint}")
    return error.exit_code


def confirmed(what: str, *, hint: str) -> bool:
    """Ask whether the user wants that.

    Parameters
    ----------
    what
        What would be done, as in "delete the objects of sbench-runs/w".
    hint
        How to say it without being asked.

    Raises
    ------
    UsageError
        If nobody is there to be asked.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"will not {what} without being told to", hint=hint)
    if click.confirm(for_terminal(f"{what[0].upper()}{what[1:]}?"), err=True):
        return True
    aside("nothing is done")
    return False


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what is being done as long as it takes; where nobody looks, load nothing for it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(for_terminal(what))):
        yield
