"""Definitions that registers of the tests name, wherever they lie, and texts inside of them.

A definition is named by the end of its dotted name (``Meter.stop``, or ``cleanup.THREADS`` where
other modules have the same name), and a text is compared without its blanks. So files may be
moved and lines wrapped, and the registers stay as they are.
"""

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.house.measures import PACKAGE, REPOSITORY, sources
from tests.selection import files_of_tests

_DATA: Final = (".toml", ".yaml")


class Span(NamedTuple):
    """A part of a file, by the offsets of its characters."""

    path: Path
    begin: int
    end: int

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")[self.begin : self.end]

    def replace(self, new: str) -> None:
        """Write other lines instead, indented like the first of the old ones."""
        text = self.path.read_text("utf-8")
        line = text[text.rfind("\n", 0, self.begin) + 1 : self.begin]
        indentation = line[: len(line) - len(line.lstrip())]
        lines = textwrap.indent(textwrap.dedent(new).strip(), indentation).removeprefix(indentation)
        self.path.write_text(text[: self.begin] + lines + text[self.end :], "utf-8")


def span_of(text: str, of: str, package: Path = PACKAGE) -> Span:
    """Return the only place of a text in a definition of the package, or in a file of its data.

    Parameters
    ----------
    text
        Blanks and line breaks in it do not matter.
    of
        End of the definition's dotted name, or of the path of a TOML or YAML file.

    Raises
    ------
    LookupError
        If there is no such place, or more than one.
    """
    within = spans(of, package)
    if not within:
        raise LookupError(f"nothing in the package is called {of}")
    found = [place for span in within for place in _places(text, span)]
    if len(found) != 1:
        raise LookupError(f"{of} has {len(found)} times the text {text!r}")
    return found[0]


def spans(of: str, package: Path = PACKAGE) -> list[Span]:
    """Return the definitions, or the files of data, whose name ends so."""
    if of.endswith(_DATA):
        return [Span(path, 0, len(path.read_text("utf-8"))) for path in sources(package, of)]
    return [span for _, span in _called(of, package)]


def full_name(end: str, package: Path = PACKAGE) -> str:
    """Return the dotted name of the only module or definition whose name ends so.

    Raises
    ------
    LookupError
        If there is none, or more than one.
    """
    modules = [_dotted(path, package) for path in sources(package)]
    names = [name for name in modules if f".{name}".endswith(f".{end}")]
    names += [name for name, _ in _called(end, package)]
    if len(names) != 1:
        raise LookupError(f"{end} is the name of {len(names)} things: {', '.join(names)}")
    return f"{package.name}.{names[0]}"


def _called(of: str, package: Path) -> list[tuple[str, Span]]:
    last = of.rpartition(".")[2]
    return [
        (name, span)
        for path in sources(package)
        if last in (text := path.read_text("utf-8"))
        for name, span in _definitions(path, text, package)
        if f".{name}".endswith(f".{of}")
    ]


def full_test_id(name: str, root: Path = REPOSITORY) -> str:
    """Return the path and the name of the only test that is called so, with its parameters.

    Raises
    ------
    LookupError
        If there is none, or more than one: then the name needs its file, ``test_x.py::test_y``.
    """
    file, _, test = name.rpartition("::")
    function = f"def {test.partition('[')[0]}("
    files = [path for path in files_of_tests(root) if path.name == file or not file]
    found = [path for path in files if function in path.read_text("utf-8")]
    if len(found) != 1:
        raise LookupError(f"{len(found)} files of tests have {name}")
    return f"{found[0].relative_to(root).as_posix()}::{test}"


def _dotted(path: Path, package: Path) -> str:
    return ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")


@cache
def _definitions(path: Path, text: str, package: Path) -> list[tuple[str, Span]]:
    begins = [0]
    for line in text.split("\n"):
        begins.append(begins[-1] + len(line) + 1)

    def inside(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Span]]:
        for node in body:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(each.lineno for each in decorators)])
            span = Span(path, begins[first - 1], min(begins[node.end_lineno or 0], len(text)))
            for name in _names(node):
                yield f"{prefix}.{name}", span
            if isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{prefix}.{node.name}")

    return [*inside(ast.parse(text).body, _dotted(path, package))]


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _places(text: str, span: Span) -> Iterator[Span]:
    wanted = "".join(text.split())
    kept = [(at, sign) for at, sign in enumerate(span.text, span.begin) if not sign.isspace()]
    squeezed = "".join(sign for _, sign in kept)
    at = squeezed.find(wanted)
    while at >= 0:
        yield Span(span.path, kept[at][0], kept[at + len(wanted) - 1][0] + 1)
        at = squeezed.find(wanted, at + 1)
