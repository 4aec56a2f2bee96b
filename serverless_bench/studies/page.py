"""An experiment's report as a page for a browser: its words, a picture, all of its figures."""

from io import StringIO
from typing import Final

from serverless_bench.reporters.definitions import terms
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.charts import Chart, Row, colors, figure, number, values
from serverless_bench.reporters.page.document import Html, document, tag
from serverless_bench.reporters.page.values import Figures, all_figures, table
from serverless_bench.studies.report import Report, head, outcome_of, tell, to_json
from serverless_bench.studies.table import TextTable, Writer, title_of

_DOUBTED: Final = "published, in doubt"
_SHAPED: Final = "measured, shaped store"
_HUES: Final = {"measured": "blue", _SHAPED: "sky", "published": "orange", _DOUBTED: "grey"}
_INDENT: Final = 1.4
"""Of an item in another one, in letters."""


class PageWriter(Writer):
    """Keeps lines and tables as the parts of a page."""

    def __init__(self) -> None:
        super().__init__(StringIO(), markdown=False)
        self.name = ""
        self.parts: list[tuple[str, list[Html]]] = [("", [])]
        """The first one, which has no title, is what comes before the others."""

    def title(self, text: str, *, top: bool = False) -> None:
        """Take the title of the page, or begin another part."""
        if top:
            self.name = text
        else:
            self.parts.append((f"{text[0].upper()}{text[1:]}", []))

    def line(self, text: str, *, deep: int = 0) -> None:
        """Take a paragraph, or an item that deep."""
        indent = f"margin-left: {deep * _INDENT:g}em" if deep else None
        self.parts[-1][1].append(tag("p", text, style=indent))

    def table(self, found: TextTable) -> None:
        """Take the table of a part, which is called as the part is."""
        caption, content = self.parts[-1]
        content.append(table(found.header, found.rows, names=found.named, caption=caption))


def page(report: Report) -> str:
    """Return the page of an experiment."""
    verdicts = [tag("p", outcome_of(one), class_="verdict") for one in report.verdicts.judged] or [
        tag("p", "There is no hypothesis to judge.", class_="verdict")
    ]
    write = PageWriter()
    head(report.experiment, write)
    write.title("measured and published")
    tell(report, write)
    figures = Figures(to_json(report), terms(), "experiment")
    drawn = _chart(report)
    first = [] if drawn is None else [("Picture", figure(drawn))]
    (_, lines), *told = write.parts
    parts = [*first, *told, all_figures(figures)]
    return document(write.name, tag("div", verdicts, lines), parts, figures.definitions())


def _chart(report: Report) -> Chart | None:
    """Return what was measured in each cell, with its interval, and what was published."""
    plot = report.experiment.plot
    name = plot.y if plot is not None and plot.y else report.experiment.metrics[0].name
    rows: list[Row] = []
    for row in report.rows:
        entry, label = row.entries[name], row.observed.cell.label
        if (found := entry.measured) is not None:
            at = {"value": found.at, "low": found.low, "high": found.high}
            what = _SHAPED if row.observed.cell.shaped_store else "measured"
            rows.append({"cell": label, "what": what, **at})
        if row.row is not None and (published := row.row.range(name)) is not None:
            at = dict(zip(("value", "low", "high"), published, strict=True))
            what = _DOUBTED if entry.doubted else "published"
            rows.append({"cell": label, "what": what, **at})
    if not rows:
        return None
    shown = {row["what"] for row in rows}
    tints = {what: palette.color(hue) for what, hue in _HUES.items() if what in shown}
    title = title_of(report.experiment.metric(name))
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
