"""Report of a study as a page for a browser: text, a picture, and all figures."""

from io import StringIO
from typing import Final

from serverless_bench.features.answers.answer import Drawing, Mark
from serverless_bench.features.page.charts import figure
from serverless_bench.features.page.document import Html, document, tag
from serverless_bench.features.page.values import Figures, all_figures, table, terms
from serverless_bench.features.plot.answer_charts import answer_chart
from serverless_bench.features.studies.plot import in_words
from serverless_bench.features.studies.report import Report, head, outcome_of, tell, to_json
from serverless_bench.features.studies.table import TextTable, Writer, title_of

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
    drawing = _drawing(report)
    picture_parts = [("Picture", figure(answer_chart(drawing)))] if drawing.marks else []
    (_, lines), *other_parts = write.parts
    parts = [*picture_parts, *other_parts, all_figures(figures)]
    return document(write.name, tag("div", verdicts, lines), parts, figures.definitions())


def _drawing(report: Report) -> Drawing:
    """Return each cell's measured value, with an interval, and published value."""
    plot = report.study.plot
    name = plot.y if plot is not None and plot.y else report.study.metrics[0].name
    marks: list[Mark] = []
    for row in report.rows:
        entry, cell = row.entries[name], row.observed.cell
        at = in_words(report.study, cell, cell.at)
        if (measured := entry.measured) is not None:
            kind = "measured, shaped store" if cell.shaped_store else "measured"
            low, high = measured.low, measured.high
            marks.append(Mark(at=at, value=measured.at, low=low, high=high, group=kind))
        if row.row is not None and (published := row.row.range(name)) is not None:
            value, low, high = published
            kind = "published, in doubt" if entry.doubted else "published"
            marks.append(Mark(at=at, value=value, low=low, high=high, group=kind))
    title = title_of(report.study.metric(name))
    return Drawing(
        title=title,
        says="Each cell: the median of its runs with its interval, and what was published, where"
        " anything was.",
        at="cell",
        value=title,
        marks=tuple(marks),
    )
