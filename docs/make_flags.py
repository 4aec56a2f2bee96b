"""Make tables of options of clients, flags of commands and parameters of the stack."""

import re
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


def flags(command: str, *inner: str) -> str:
    """Return the flags of a command, or of a command within it, as Markdown."""
    opened = open_command(command)
    for name in inner:
        if isinstance(opened, click.Group):
            opened = opened.commands[name]
    options = (one for one in opened.params if isinstance(one, click.Option))
    rows = (flag_row(opened, one) for one in options if "--help" not in one.opts)
    return markdown([("flag", "takes", "default", "does"), *rows])


def flag_row(command: click.Command, option: click.Option) -> tuple[str, ...]:
    """Return the names of a flag, its values, its default and its meaning."""
    context = click.Context(command)
    shown = option.get_help_extra(context).get("default", "")
    text, _, default = (option.help or "").partition("  [default: ")
    takes = "" if option.is_flag else option.make_metavar(context)
    names = ", ".join(option.opts)
    if option.secondary_opts:
        names = f"{names} / {', '.join(option.secondary_opts)}"
    return (
        f"`{names}`",
        takes.partition(" RANGE")[0],
        str(shown or default.removesuffix("]")),
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
