"""Figures on a page: each with the value that the JSON has, and its definition at hand."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from serverless_bench.reporters.definitions import Figure, Sections, find
from serverless_bench.reporters.page.document import Content, Html, Part, tag
from serverless_bench.units import format_per_s, format_rate, format_seconds, format_size

LONG: Final = frozenset({"histogram", "over_time"})
"""Lists of a report that are drawn, and not written down."""
_FORMS: Final[Mapping[str, Callable[[float], str]]] = {
    "bytes": lambda value: format_size(round(value)),
    "bytes/s": format_rate,
    "operations/s": format_per_s,
    "s": format_seconds,
}
_NONE: Final = Html("-")
_MARKED: Final = re.compile(r"`([^`]*)`|\[([^\]]*)\]\([^)]*\)")


class Figures:
    """The values of a JSON document, by their paths.

    Parameters
    ----------
    document
        Of a report.
    sections
        What its fields are.
    section
        Of the document itself.
    words
        By path, what readers see of a value whose unit its definition cannot know.
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
        """Return one figure as readers and programs see it."""
        value = self._values[path]
        shown = self._words.get(path) or show(value, self._unit(path), path)
        return tag("data", shown, data_figure=path, value=json.dumps(value))

    def name(self, path: str, text: str | None = None) -> Html:
        """Return the name of a figure, which opens its definition."""
        found = find(path, self._sections, self._section)
        if found is None:
            return tag("span", text or path)
        self._used.setdefault(*found)
        return tag("button", text or path, class_="term", popovertarget=f"d-{found[0]}")

    def rows(self, path: str, count: int, names: Iterable[str]) -> list[list[Html]]:
        """Return figures of the first items of a list as the cells of a table."""
        paths = ([f"{path}[{at}].{name}" for name in names] for at in range(count))
        return [[self.value(one) if one in self else _NONE for one in row] for row in paths]

    def table(self) -> Html:
        """Return a table of all figures."""
        rows = ((self.name(path), self.value(path), self._unit(path)) for path in self._values)
        header = ("figure", "value", "unit")
        return table(header, rows, names=1, texts=2, caption="All figures")

    def definitions(self) -> Iterator[Html]:
        """Yield the definitions of all figures that were named, each shown on demand."""
        for name, figure in self._used.items():
            facts = {
                "Unit": ", ".join(filter(None, (figure.unit, figure.form))),
                "None": figure.null,
                "Also counts": ", ".join(figure.counts),
            }
            yield tag(
                "div",
                tag("p", tag("strong", name.partition("-")[2]), ": ", prose(figure.what), "."),
                (tag("p", f"{what}: ", prose(text), ".") for what, text in facts.items() if text),
                id=f"d-{name}",
                popover="auto",
                class_="definition",
            )

    def _unit(self, path: str) -> str:
        found = find(path, self._sections, self._section)
        # How many values percentiles are of has not the unit of these.
        return "" if found is None or path.endswith(".n") else found[1].unit or ""


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - a JSON value
    """Yield the values of a JSON document, by paths as in ``cells[0].at``; not the long lists."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in LONG:
                yield from flat(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{path}[{number}]")
    else:
        yield path, value


def show(value: Any, unit: str | None, path: str = "") -> str:  # noqa: ANN401 - a JSON value
    """Return a value in words: with its unit, if that does not go without saying."""
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
    """Yield a text whose code and links are marked as in Markdown; links lead nowhere here."""
    begin = 0
    for found in _MARKED.finditer(text):
        yield text[begin : found.start()]
        yield found[2] if found[1] is None else tag("code", found[1])
        begin = found.end()
    yield text[begin:]


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Content]],
    *,
    names: int,
    caption: str,
    texts: int = 0,
) -> Html:
    """Return a table whose first columns name its rows and whose others are numbers.

    A reader who has scripts sorts it by its header.

    Parameters
    ----------
    header
        Of its columns.
    rows
        Their cells.
    names
        Columns that name a row.
    caption
        What the table is called; no two of a page alike.
    texts
        Columns after these that are text and name nothing.
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
    whole = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", body),
        class_="sortable",
    )
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def pairs(rows: Sequence[tuple[Content, Content]]) -> Html:
    """Return names and their values as a list."""
    return tag("dl", ((tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def all_figures(figures: Figures) -> Part:
    """Return the part of a page with every field of its JSON document."""
    says = tag("p", "The fields of the JSON document; the name of each opens its definition.")
    return "All figures", [says, folded("Show all figures", figures.table())]


def folded(summary: str, *content: Content) -> Html:
    """Return what is shown on demand."""
    return tag("details", tag("summary", summary), content)
