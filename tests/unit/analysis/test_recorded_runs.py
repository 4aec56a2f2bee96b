"""Twenty runs that an older version recorded are still read, and reported on as they were then.

Each directory in ``tests/recorded`` holds a run and ``report.json``, its report of that time.
``docs/renamed.toml`` says which fields have another name since; nothing else may differ.
"""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.analysis.merge import merge_reports
from serverless_bench.analysis.summary import REPORT_SCHEMA, summarize
from serverless_bench.rundir.run import load_run

RECORDED = Path(__file__).parents[2] / "recorded"
DOCS = Path(__file__).parents[3] / "docs"
RUNS = sorted(path.parent for path in RECORDED.glob("*/run.json"))
RENAMED = {
    tuple(old.split(".")): tuple(new.split("."))
    for old, new in tomllib.loads((DOCS / "renamed.toml").read_text()).items()
}
MODELLED = {("bill", "estimate"), ("bill", "estimate_error")}
"""What a run was expected to cost follows today's model of a function's network."""

Place = tuple[str | int, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each figure of a report with its place; an empty list or mapping is one, too."""
    if not value or not isinstance(value, dict | list):
        yield place, value
        return
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(inner, (*place, name))


def renamed(place: Place) -> Place:
    """Return where a figure stands today: the longest path in the table counts."""
    for end in range(len(place), 0, -1):
        general = tuple("*" if isinstance(part, int) else part for part in place[:end])
        if general in RENAMED:
            numbers = (part for part in place[:end] if isinstance(part, int))
            new = tuple(next(numbers) if part == "*" else part for part in RENAMED[general])
            return (*new, *place[end:])
    return place


def alike(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        # Another NumPy adds up in another order.
        return math.isclose(old, new, rel_tol=1e-12)
    return type(old) is type(new) and bool(old == new)


def test_there_are_twenty() -> None:
    assert len(RUNS) == 20


@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.name)
def test_a_report_is_what_it_was(run: Path) -> None:
    before: Mapping[str, Any] = json.loads((run / "report.json").read_text())
    after = json.loads(json.dumps(summarize(load_run(run)).to_json(), allow_nan=False))
    old = {renamed(place): value for place, value in leaves(before)}
    new = dict(leaves(after))
    assert new.pop(("report_schema",)) == REPORT_SCHEMA
    old.pop(("report_schema",))
    # What is reported since says nothing of a run before it.
    since = {place: new[place] for place in new.keys() - old.keys()}
    # Of the job, and old runs have one as well.
    assert since.pop(("idle_threads",)) == load_run(run).job.idle_threads
    assert since.pop(("cleaned",)) is False
    assert set(since.values()) <= {None}
    assert old.keys() <= new.keys()
    assert {place for place in old if not alike(old[place], new[place])} <= MODELLED


def test_the_table_names_fields_that_were_there() -> None:
    places = {
        tuple("*" if isinstance(part, int) else part for part in place[:end])
        for run in RUNS
        for place, _ in leaves(json.loads((run / "report.json").read_text()))
        for end in range(1, len(place) + 1)
    }
    assert set(RENAMED) <= places


def test_reports_of_then_and_of_today_are_merged_alike() -> None:
    run = RECORDED / "mixed"
    before = json.loads((run / "report.json").read_text())
    after = json.loads(json.dumps(summarize(load_run(run)).to_json()))
    assert merge_reports([before, before]) == merge_reports([after, after])
