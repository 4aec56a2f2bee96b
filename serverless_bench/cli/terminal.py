"""What only somebody at a terminal sees: questions, and that work goes on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from serverless_bench.errors import UsageError


def confirmed(what: str, *, hint: str) -> bool:
    """Ask whether the user wants that.

    Parameters
    ----------
    what
        What would be deleted, as in "delete the objects of sbench-runs/w".
    hint
        How to say it without being asked.

    Raises
    ------
    UsageError
        If nobody is there to be asked.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"will not {what} without being told to", hint=hint)
    if click.confirm(f"{what[0].upper()}{what[1:]}?", err=True):
        return True
    click.echo("nothing is deleted", err=True)
    return False


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what is being done as long as it takes; where nobody looks, load nothing for it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
