"""Draw the elasticities of the runs with known causes in ``why-runs.csv``, a panel for each cause.

python -m docs.make_why
"""

import csv
from pathlib import Path
from typing import Final

from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import Chart, Row, Spec, number, values
from serverless_bench.features.plot.picture import Picture, column, panel
from serverless_bench.features.why.elasticity import SPLIT
from serverless_bench.features.why.interventions import CHANGES

FOLDER: Final = Path(__file__).parents[1] / "serverless_bench" / "features" / "why"
CAUSES: Final = {
    "latency": ("latency", "latency read", "latency tls"),
    "bandwidth per connection": ("connection", "connection read"),
    "CPU": ("machine", "machine, 60 s", "cpu"),
    "GIL": ("lock",),
    "user code": ("own",),
    "requests of the store": ("account", "endpoints", "queue", "queue read"),
    "requests of a prefix": ("prefix",),
    "throughput of an endpoint": ("endpoint",),
    "bandwidth of a function": ("function", "links"),
    "bandwidth of the store": ("pipe",),
}
"""Rigs by their cause."""
_CHANGES: Final = {
    "threads or pause": "more threads, or a pause",
    **{name: text for name, text in CHANGES.items() if name not in {"thread", "pause", "nothing"}},
}
_ACROSS: Final = 5
_WIDTH: Final = 195
_DOMAIN: Final = [-0.5, 1.5]


def picture() -> Picture:
    """Return a dot for each run and change, with a line at the elasticity that decides."""
    with (FOLDER / "why-runs.csv").open(encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    panels = list[Spec]()
    for place, (cause, rigs) in enumerate(CAUSES.items()):
        rows: list[Row] = [
            {"change": text, "value": float(run[name])}
            for run in runs
            if run["rig"] in rigs
            for name, text in _CHANGES.items()
            if run[name]
        ]
        chart = _chart(cause, rows, labels=place % _ACROSS == 0)
        panels.append(panel(chart, "", _WIDTH))
    title = "Elasticity of each change in runs with a known cause: it bounds the job above 0.5"
    lines = [panels[at : at + _ACROSS] for at in range(0, len(panels), _ACROSS)]
    return column([{"hconcat": line} for line in lines], title)


def _chart(cause: str, rows: list[Row], *, labels: bool) -> Chart:
    scale = {"domain": _DOMAIN, "nice": False, "clamp": True}
    ticks = {"values": [0, 0.5, 1], "format": "~g"}
    x = number("value", "elasticity", scale=scale, axis=ticks)
    axis = {"labels": labels, "minExtent": 0, "maxExtent": 200, "labelLimit": 200}
    names = {"domain": [*_CHANGES.values()]}
    y = {"field": "change", "type": "nominal", "title": None, "scale": names, "axis": axis}
    dot = {"type": "point", "filled": True, "size": 30, "opacity": 0.5}
    line = {"type": "rule", "strokeDash": [6, 4], "color": palette.color("text")}
    return Chart(
        title=cause,
        says="",
        spec={
            "layer": [
                {"data": values([{"value": SPLIT}]), "mark": line, "encoding": {"x": x}},
                {
                    "data": values(rows),
                    "mark": {**dot, "color": palette.color("blue")},
                    "encoding": {"x": x, "y": y},
                },
            ]
        },
        height=130,
    )


if __name__ == "__main__":
    picture().save(FOLDER / "why.png")
