"""Recorded runs are read, and reported on as ``report.json`` beside each has it.

``make golden`` accepts the reports as they are now, so that a new figure needs no line here.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import load_run
from tests.house.members import uses

RECORDED = Path(__file__).parents[2] / "recorded"
RUNS = sorted(path.parent for path in RECORDED.glob("*/run.json"))
PARTS = {"bill": "cost", "bottleneck": "bottleneck", "deliveries": "remote"}
"""Fields of some recorded reports, and the features that they are of."""
WORKLOADS = {run: json.loads((run / "run.json").read_text())["job"]["workload"] for run in RUNS}

Place = tuple[str | int, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each figure of a report with its path; an empty list or mapping counts as a figure."""
    if not value or not isinstance(value, dict | list):
        yield place, value
        return
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(inner, (*place, name))


def alike(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        # Another NumPy adds up in another order.
        return math.isclose(old, new, rel_tol=1e-12)
    return type(old) is type(new) and bool(old == new)


def in_lines(report: dict[str, Any]) -> str:
    """Return a report as JSON with a line for each of its fields, so that a diff shows which."""
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in report.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def members(run: Path) -> list[str]:
    """Return what a run and its report are made with."""
    report = json.loads((run / "report.json").read_text())
    parts = [f"feature {feature}" for part, feature in PARTS.items() if part in report]
    return [f"workload {WORKLOADS[run]}", *parts]


def test_there_are_twenty() -> None:
    assert len(RUNS) == 20


@pytest.mark.parametrize(
    "run",
    [pytest.param(run, id=run.name, marks=uses(*members(run))) for run in RUNS],
)
def test_a_report_equals_the_recorded_one(run: Path, request: pytest.FixtureRequest) -> None:
    report = json.loads(json.dumps(summarize(load_run(run)).to_json(), allow_nan=False))
    golden = run / "report.json"
    if request.config.getoption("update_golden"):
        golden.write_text(in_lines(report))
    expected, actual = (dict(leaves(each)) for each in (json.loads(golden.read_text()), report))
    assert actual.keys() == expected.keys()
    assert {place for place in actual if not alike(expected[place], actual[place])} == set()
