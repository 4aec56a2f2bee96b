"""The page of a series of runs, as `sbench ls` lists them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from serverless_bench.reporters.definitions import terms
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.charts import (
    COUNTS,
    Chart,
    Row,
    colors,
    figure,
    number,
    values,
)
from serverless_bench.reporters.page.document import Part, document
from serverless_bench.reporters.page.markup import tag
from serverless_bench.reporters.page.values import Figures, all_figures, table
from serverless_bench.units import format_count, format_rate

_COLUMNS: Final = {
    "name": "name",
    "when": "saved (UTC)",
    "command": "command",
    "requested": "functions",
    "ok": "ok",
    "bytes": "moved",
    "whole_bytes_per_s": "whole throughput",
    "withheld": "withheld",
    "ended": "ended",
    "simulated": "simulated with",
}
_NAMES: Final = 3
"""Columns that are no numbers."""


def page(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of runs.

    Parameters
    ----------
    title
        What these runs are.
    rows
        What `sbench ls --format json` says of each, the most recent first.
    """
    figures = Figures(rows, terms(), "series")
    runs = [row for row in rows if row.get("whole_bytes_per_s")]
    rates = [float(row["whole_bytes_per_s"]) for row in runs]
    says = format_count(len(runs), "run") + " with a headline"
    if rates:
        between = f"{format_rate(min(rates))} to {format_rate(max(rates))}"
        says += f"; whole throughput {between}"
    partial = sum(row.get("ok", 0) < row.get("requested", 0) for row in rows)
    state = f"; {format_count(partial, 'run')} with functions failed or lost" if partial else ""
    lead = tag("p", says, tag("span", state, class_="bad"), ".", class_="verdict")
    header = list(_COLUMNS.values())
    cells = [
        [
            figures.value(f"[{at}].{name}") if f"[{at}].{name}" in figures else "-"
            for name in _COLUMNS
        ]
        for at in range(len(rows))
    ]
    shown = [table(header, cells, names=_NAMES, caption="Runs, the most recent first")]
    drawn = [figure(_over_runs(runs[::-1]))] if len(runs) > 1 else []
    parts = [Part(title="Runs", content=[*drawn, *shown]), all_figures(figures)]
    return document(title, lead, parts, figures.definitions())


def _over_runs(runs: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the throughput of each run, in the order in which they were saved."""
    rows: list[Row] = [
        {
            "at": place,
            "what": row["command"],
            "name": row["name"],
            "rate": float(row["whole_bytes_per_s"]) / 1e6,
        }
        for place, row in enumerate(runs, 1)
    ]
    commands = {str(row["command"]): palette.color_of(str(row["command"])) for row in runs}
    return Chart(
        title="Whole throughput, MB/s",
        says="Each dot is a run, in the order in which they were saved.",
        spec={
            "data": values(rows),
            "mark": {"type": "point", "filled": True, "size": 70},
            "encoding": {
                "x": number("at", "run", scale={"zero": False}, axis=COUNTS),
                "y": number("rate"),
                "color": colors(commands, "circle"),
                "tooltip": [
                    {"field": "name", "title": "run"},
                    {"field": "what", "title": "command"},
                    number("rate", "MB/s", format=".5~g"),
                ],
            },
        },
        height=200,
    )
