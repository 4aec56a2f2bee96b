"""Make tables of options of clients, flags of commands and parameters of the stack."""

import re
from collections.abc import Iterator
from typing import Final

import click
import yaml

from docs.tables import HERE, markdown
from serverless_bench.cli.main import open_command
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.options import documented

STACK: Final = HERE.parent / "serverless_bench" / "features" / "aws" / "stack" / "stack.yaml"
_ABOUT: Final = re.compile(r"(.+) \((.+); (.+)\)")
"""Description of an option of a client, its values and its default."""


def client_options(client: str) -> str:
    """Return the options of a client as Markdown; empty if the client was removed."""
    if client not in CLIENTS:
        return ""
    options = documented(CLIENTS.load(client).info.options)
    rows = ((f"`{name}`", *_parts(about)) for name, about in options.items())
    return markdown([("option", "does", "values", "default"), *rows])


def _parts(about: str) -> tuple[str, str, str]:
    found = _ABOUT.fullmatch(about)
    if not found:
        raise ValueError(f"neither values nor a default: {about}")
    return found[1], found[2], found[3].removeprefix("by default ").removeprefix("default ")


def flags(command: str) -> str:
    """Return the flags of a command as Markdown."""
    return markdown([("flag", "takes", "default", "does"), *_flags(open_command(command))])


def _flags(command: click.Command) -> Iterator[tuple[str, ...]]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            shown = parameter.get_help_extra(click.Context(command)).get("default", "")
            text, _, said = (parameter.help or "").partition("  [default: ")
            takes = "" if parameter.is_flag else parameter.make_metavar(click.Context(command))
            yield (
                f"`{', '.join(parameter.opts)}`",
                takes.partition(" RANGE")[0],
                str(shown or said.removesuffix("]")),
                text,
            )


def parameters() -> str:
    """Return the parameters of the stack as Markdown."""
    text = STACK.read_text(encoding="utf-8").partition("\nParameters:\n")[2]
    block = re.split(r"^(?=\S)", text, maxsplit=1, flags=re.MULTILINE)[0]
    rows = (
        (f"`{name}`", str(one.get("Default", "")), one.get("Description", ""))
        for name, one in yaml.safe_load(block).items()
    )
    return markdown([("parameter", "default", "means"), *rows])
