"""Report of a study as a page for a browser: text, a picture, and all figures."""

from io import StringIO
from typing import Final

from serverless_bench.features.page.charts import figure
from serverless_bench.features.page.document import Html, document, tag
from serverless_bench.features.page.values import Figures, all_figures, table, terms
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import Chart, Row, colors, number, values
from serverless_bench.features.studies.report import Report, head, outcome_of, tell, to_json
from serverless_bench.features.studies.table import TextTable, Writer, title_of

_DOUBTED: Final = "published, in doubt"
_SHAPED: Final = "measured, shaped store"
_HUES: Final = {"measured": "blue", _SHAPED: "sky", "published": "orange", _DOUBTED: "grey"}
_INDENT: Final = 1.4
"""Indentation of a nested item, in em."""


class PageWriter(Writer):
    """Writer that keeps lines and tables as the parts of a page."""

    def __init__(self) -> None:
        super().__init__(StringIO(), markdown=False)
        self.name = ""
        self.parts: list[tuple[str, list[Html]]] = [("", [])]
        """Titles and contents of the parts; the untitled first part precedes the rest."""

    def title(self, text: str, *, top: bool = False) -> None:
        """Set the title of the page, or start a new part."""
        if top:
            self.name = text
        else:
            self.parts.append((f"{text[0].upper()}{text[1:]}", []))

    def line(self, text: str, *, deep: int = 0) -> None:
        """Add a paragraph, or an item at a level of nesting."""
        indent = f"margin-left: {deep * _INDENT:g}em" if deep else None
        self.parts[-1][1].append(tag("p", text, style=indent))

    def table(self, found: TextTable) -> None:
        """Add a table, with the title of the part as caption."""
        caption, content = self.parts[-1]
        content.append(table(found.header, found.rows, names=found.named, caption=caption))


def page(report: Report) -> str:
    """Return the page of a study."""
    verdicts = [
        tag("p", outcome_of(judged), class_="verdict") for judged in report.verdicts.judged
    ] or [tag("p", "There is no hypothesis to judge.", class_="verdict")]
    write = PageWriter()
    head(report.study, write)
    write.title("measured and published")
    tell(report, write)
    figures = Figures(to_json(report), terms(), "study")
    chart = _chart(report)
    picture_parts = [] if chart is None else [("Picture", figure(chart))]
    (_, lines), *other_parts = write.parts
    parts = [*picture_parts, *other_parts, all_figures(figures)]
    return document(write.name, tag("div", verdicts, lines), parts, figures.definitions())


def _chart(report: Report) -> Chart | None:
    """Return the chart of each cell's measured value, with an interval, and published value."""
    plot = report.study.plot
    name = plot.y if plot is not None and plot.y else report.study.metrics[0].name
    rows: list[Row] = []
    for row in report.rows:
        entry, label = row.entries[name], row.observed.cell.label
        if (measured := entry.measured) is not None:
            at = {"value": measured.at, "low": measured.low, "high": measured.high}
            kind = _SHAPED if row.observed.cell.shaped_store else "measured"
            rows.append({"cell": label, "what": kind, **at})
        if row.row is not None and (published := row.row.range(name)) is not None:
            at = dict(zip(("value", "low", "high"), published, strict=True))
            kind = _DOUBTED if entry.doubted else "published"
            rows.append({"cell": label, "what": kind, **at})
    if not rows:
        return None
    kinds_in_use = {row["what"] for row in rows}
    tints = {kind: palette.color(hue) for kind, hue in _HUES.items() if kind in kinds_in_use}
    title = title_of(report.study.metric(name))
    labels = list(dict.fromkeys(str(row["cell"]) for row in rows))
    axis = {"labelLimit": 320, "maxExtent": 330}
    y = {"field": "cell", "type": "nominal", "title": None, "sort": None, "axis": axis}
    beside = {"field": "what", "sort": list(tints)}
    return Chart(
        title=title,
        says="Each cell: the median of its runs with its interval, and what was published, where"
        " anything was.",
        spec={
            "data": values(rows),
            "encoding": {"y": y, "yOffset": beside, "color": colors(tints, "circle")},
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {"x": number("low", title), "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {
                        "x": number("value", title),
                        "tooltip": [
                            {"field": "cell", "title": "cell"},
                            {"field": "what", "title": "what"},
                            *(number(n, n, format=".5~g") for n in ("value", "low", "high")),
                        ],
                    },
                },
            ],
        },
        height=26 * len(labels) + 20,
    )
