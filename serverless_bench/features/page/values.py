"""Values on a page, each with JSON value and definition."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from serverless_bench.base.units import format_per_s, format_rate, format_seconds, format_size
from serverless_bench.features.page.document import Content, Html, Part, tag
from serverless_bench.report.definitions import Figure, Sections, read, written_definitions

LONG: Final = frozenset({"histogram", "over_time"})
"""Lists of a report that are shown as charts and not as values."""
_FORMS: Final[Mapping[str, Callable[[float], str]]] = {
    "bytes": lambda value: format_size(round(value)),
    "bytes/s": format_rate,
    "operations/s": format_per_s,
    "s": format_seconds,
}
_INDEX: Final = re.compile(r"\[\d+\]")
_AS_BEFORE: Final = "as before"
_INNER: Final[Mapping[str, str]] = {
    **dict.fromkeys(("latency", "without_backoff", "response", "queueing"), "times"),
    **dict.fromkeys(("capped", "usl"), "law"),
}
"""Sections of objects with names that differ from the field."""
_NONE: Final = Html("-")
_MARKED: Final = re.compile(r"`([^`]*)`|\[([^\]]*)\]\([^)]*\)")


@cache
def terms() -> Sections:
    """Return the definitions of other documents: comparisons, series, studies."""
    folder = files("serverless_bench.features.page")
    return read((folder / "terms.toml").read_text(encoding="utf-8"))


@cache
def definitions(workload: str) -> Sections:
    """Return the self-contained definitions of the report of a workload's run."""
    sections = written_definitions([workload])
    return {section: _by_themselves(figures) for section, figures in sections.items()}


def find(path: str, sections: Sections, section: str) -> tuple[str, Figure] | None:
    """Return the definition and the name of a value of a document; None if it is undefined.

    Parameters
    ----------
    path
        Path of the value, such as ``latencies.by_kind[0].ok``. Mappings of errors and of
        percentiles have a single definition.
    sections
        All definitions.
    section
        Section of the document.
    """
    definition = None
    for name in _INDEX.sub("", path).split("."):
        if name in sections[section]:
            definition = f"{section}-{name}", sections[section][name]
        inner = _INNER.get(name, name)
        section = inner if inner in sections else section
    return definition


def _by_themselves(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """Return the figures of a section, with references to the previous row resolved."""
    resolved: dict[str, Figure] = {}
    before = ""
    for name, figure in figures.items():
        resolved[name] = figure
        if figure.null is not None:
            before = figure.null.replace(_AS_BEFORE, before)
            resolved[name] = msgspec.structs.replace(figure, null=before)
    return resolved


class Figures:
    """The values of a JSON document by path.

    Parameters
    ----------
    document
        Content of the document.
    sections
        Definitions of its fields.
    section
        Section of the document in the definitions.
    words
        Texts by path, for values without a unit in their definition.
    """

    def __init__(
        self,
        document: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        sections: Sections,
        section: str,
        words: Mapping[str, str] | None = None,
    ) -> None:
        self._words = words or {}
        self._values = dict(flat(document))
        self._sections = sections
        self._section = section
        self._used: dict[str, Figure] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._values

    def value(self, path: str) -> Html:
        """Return a value for readers and programs."""
        value = self._values[path]
        text = self._words.get(path) or show(value, self._unit(path), path)
        return tag("data", text, data_figure=path, value=json.dumps(value))

    def name(self, path: str, text: str | None = None) -> Html:
        """Return the name of a value as a button that opens its definition."""
        definition = find(path, self._sections, self._section)
        if definition is None:
            return tag("span", text or path)
        self._used.setdefault(*definition)
        return tag("button", text or path, class_="term", popovertarget=f"d-{definition[0]}")

    def rows(self, path: str, count: int, names: Iterable[str]) -> list[list[Html]]:
        """Return values of the first items of a list as table cells."""
        paths = ([f"{path}[{at}].{name}" for name in names] for at in range(count))
        return [[self.value(cell) if cell in self else _NONE for cell in row] for row in paths]

    def table(self) -> Html:
        """Return a table of all values."""
        rows = ((self.name(path), self.value(path), self._unit(path)) for path in self._values)
        header = ("figure", "value", "unit")
        return table(header, rows, names=1, texts=2, caption="All figures")

    def definitions(self) -> Iterator[Html]:
        """Yield the definitions of all named values, shown on demand."""
        for name, figure in self._used.items():
            facts = {
                "Unit": ", ".join(filter(None, (figure.unit, figure.form))),
                "None": figure.null,
                "Also counts": ", ".join(figure.counts),
            }
            yield tag(
                "div",
                tag("p", tag("strong", name.partition("-")[2]), ": ", prose(figure.what), "."),
                (tag("p", f"{label}: ", prose(text), ".") for label, text in facts.items() if text),
                id=f"d-{name}",
                popover="auto",
                class_="definition",
            )

    def _unit(self, path: str) -> str:
        definition = find(path, self._sections, self._section)
        # The number of values has no unit, unlike their percentiles.
        return "" if definition is None or path.endswith(".n") else definition[1].unit or ""


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a JSON document, with paths like ``cells[0].at``, without long lists."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in LONG:
                yield from flat(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{path}[{number}]")
    else:
        yield path, value


def show(value: Any, unit: str | None, path: str = "") -> str:
    """Format a value, with its unit if it is not obvious."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if unit is not None and unit in _FORMS:
        return _FORMS[unit](value)
    plain = path.endswith("seed") or unit in {"version", "number"}
    return str(value) if plain else f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def prose(text: str) -> Iterator[Content]:
    """Yield a text with code and links in Markdown; links are replaced by their text."""
    begin = 0
    for match in _MARKED.finditer(text):
        yield text[begin : match.start()]
        yield match[2] if match[1] is None else tag("code", match[1])
        begin = match.end()
    yield text[begin:]


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Content]],
    *,
    names: int,
    caption: str,
    texts: int = 0,
) -> Html:
    """Return a table with names in the first columns and numbers in the others.

    Readers with scripts enabled can sort it by clicking the header.

    Parameters
    ----------
    header
        Titles of the columns.
    rows
        Cells of the rows.
    names
        Number of columns that name a row.
    caption
        Title of the table, unique within a page.
    texts
        Number of following columns that contain text.
    """
    aligned = [None] * (names + texts) + ["number"] * (len(header) - names - texts)
    head = (
        tag("th", cell, scope="col", class_=style)
        for cell, style in zip(header, aligned, strict=True)
    )
    body = (
        tag(
            "tr",
            (
                tag("th", cell, scope="row") if at < names else tag("td", cell, class_=style)
                for at, (cell, style) in enumerate(zip(row, aligned, strict=True))
            ),
        )
        for row in rows
    )
    element = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", body),
        class_="sortable",
    )
    return tag("div", element, class_="scroll", tabindex=0, role="region", aria_label=caption)


def pairs(rows: Sequence[tuple[Content, Content]]) -> Html:
    """Return names and values as a list."""
    return tag("dl", ((tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def all_figures(figures: Figures) -> Part:
    """Return the part of a page that lists all fields of its JSON document."""
    text = tag("p", "All fields of the JSON document; click a name for its definition.")
    return "All figures", [text, folded("Show all figures", figures.table())]


def folded(summary: str, *content: Content) -> Html:
    """Return content that is collapsed until requested."""
    return tag("details", tag("summary", summary), content)
