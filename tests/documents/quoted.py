"""Commands that documents quote, and their validity.

No command is run: click, argparse and make check whether they would accept it.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from docs import make_tables
from docs.make_site import complete
from serverless_bench import __version__
from serverless_bench.base.errors import PluginError
from serverless_bench.cli.main import commands

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted({*ROOT.glob("*.md"), *make_tables.PAGES, *ROOT.glob("[!.]*/README.md")})
FOREIGN: Final = frozenset({"aws", "cd", "export", "head", "openssl", "sam"})
"""Commands of other projects, which are not checked here."""
_OURS: Final = ("make", "pip", "python", "sbench", "sh")
BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SETTING: Final = re.compile(r"[A-Z_]+=\S*")
WHEEL: Final = f"serverless_bench-{__version__}-py3-none-any.whl"
"""Output of `make dist`."""
_NUMBER: Final = "N"
"""Replaces a number in prose."""


@dataclass(frozen=True)
class Quoted:
    """One command.

    Parameters
    ----------
    words
        Words as the shell would split them.
    whole
        Whether it can be typed unchanged; a quotation within a sentence may lack
        required arguments.
    """

    page: Path
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {shlex.join(self.words)}"


def quoted(page: Path) -> Iterator[Quoted]:
    """Yield the commands of a page: every line to type, and texts in backticks."""
    text = complete(page)
    for kind, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            first = line.removeprefix("$ ").split(" ")[0]
            if line.strip() and (kind in {"sh", "console"} or first in _OURS):
                yield from _split(page, line.removeprefix("$ "), whole=True)
    for span in re.findall(r"`([^`]+)`", BLOCK.sub("", text)):
        line = " ".join(span.split())
        bare = line.split(" ")
        while bare and _SETTING.fullmatch(bare[0]):
            bare.pop(0)
        if len(bare) > 1 and bare[0] in _OURS:
            yield from _split(page, line, whole=False)


def _split(page: Path, line: str, *, whole: bool) -> Iterator[Quoted]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in {"&&", "|", ";"}:
            words.append(word)
            continue
        while words and _SETTING.fullmatch(words[0]):
            words.pop(0)
        for sign in {"<", ">"} & set(words):
            words = words[: words.index(sign)]
        if words:
            yield Quoted(page, tuple(words), whole)
        words = []


def check(command: Quoted) -> None:
    """Raise unless the command exists, and accepts these arguments."""
    name, *rest = command.words
    if name == "sbench":
        _check_sbench(command, rest)
    elif name == "make":
        _check_make(rest)
    elif name == "python":
        _check_python(command, rest)
    elif name == "sh":
        for inner in _split(command.page, rest[1], whole=command.whole):
            check(inner)
    elif name == "pip":
        _check_pip(rest)
    elif name == "uv" and rest[0] == "pip":
        _check_pip(rest[1:])
    elif command.whole:
        assert name in FOREIGN, f"nobody knows {name}"


def _check_python(command: Quoted, arguments: list[str]) -> None:
    if arguments[0].endswith(".py"):
        assert (ROOT / arguments[0]).exists(), arguments[0]
        return
    if arguments[0] != "-m":
        assert not command.whole, arguments
        return
    name, *rest = arguments[1:]
    if name == "serverless_bench":
        _check_sbench(command, rest)
    elif name == "pytest":
        for word in rest:
            assert not word.startswith("tests/") or next(ROOT.glob(word), None), word
    else:
        is_package = (ROOT / name.replace(".", "/")).is_dir()
        import_module(f"{name}.__main__" if is_package else name).parser().parse_args(rest)


def _check_sbench(command: Quoted, arguments: list[str]) -> None:
    if arguments in ([], ["--help"], ["--version"]):
        return
    own, inner = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        own, inner = arguments[:at], arguments[at + 1 :]
    group: click.Command | None = commands
    context = commands.make_context("sbench", list(own))
    while isinstance(group, click.Group):
        if not own:
            # A sentence may speak of the group.
            assert not command.whole
            return
        name, *own = own
        group = group.get_command(context, name)
        assert group is not None, f"no command {name}"
        if isinstance(group, click.Group) and own:
            context = group.make_context(name, list(own), parent=context)
    assert group is not None
    _parse(command, group, [*own, *(["--", *inner] if inner else [])], context)
    _check_names(command, own)
    if inner:
        check(replace(command, words=tuple(inner)))


def _parse(
    command: Quoted, leaf: click.Command, arguments: list[str], parent: click.Context
) -> None:
    if not command.whole:
        arguments = ["1" if word == _NUMBER else word for word in arguments]
    try:
        given = leaf.make_context(leaf.name, arguments, parent=parent).params
        _check_inner(command, given)
    except click.exceptions.Exit:
        return
    except PluginError:
        # The executor of a package in examples/, which is not installed here.
        if "processes" not in command.words:
            raise
    except (click.MissingParameter, click.BadOptionUsage):
        # "`sbench import`", or a flag that a sentence speaks of without a value.
        if command.whole:
            raise


def _check_inner(command: Quoted, given: Mapping[str, object]) -> None:
    """Check commands within arguments for which click accepts any text."""
    words = given.get("words")
    # A sentence may have COMMAND there.
    if command.words[1] == "plan" and isinstance(words, tuple):
        _check_sbench(command, [word for word in words if command.whole or not word.isupper()])
    for value in given.values():
        if isinstance(value, str) and re.match(r"(\S+/)?sbench ", value):
            _check_sbench(command, shlex.split(value)[1:])
    if command.words[1] == "export" and command.whole:
        from serverless_bench.features.formats.exporters import EXPORTERS

        assert given["style"] in EXPORTERS, given["style"]


def _check_names(command: Quoted, arguments: list[str]) -> None:
    """Check arguments for which click accepts any text: studies and files of the repository."""
    if command.words[1:3] in {("study", "run"), ("study", "show")}:
        from serverless_bench.features.studies import names

        placeholder = None if command.whole else "NAME"
        named = [
            word for word in command.words[3:4] if not word.startswith("-") and word != placeholder
        ]
        assert set(named) <= set(names()), named
    for word in arguments:
        if word.startswith("examples/"):
            assert (ROOT / word).exists(), word


def _check_make(targets: list[str]) -> None:
    text = (ROOT / "Makefile").read_text()
    known = {
        name
        for line in re.findall(r"^([^\s:=#][^:=]*):", text, re.MULTILINE)
        for name in line.split()
    }
    for target in targets:
        assert target in known, f"make has no {target}"


def _check_pip(arguments: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for word in arguments[1:]:
        is_package = (ROOT / word / "pyproject.toml").is_file()
        if word.startswith("-") or (ROOT / word).is_file() or is_package:
            continue
        found = re.fullmatch(rf"(?:serverless-bench|\.|{WHEEL})(?:\[([\w,-]+)\])?", word)
        assert found, word
        assert set((found[1] or "all").split(",")) <= set(extras), word
