"""Selection of the record that counts for an invocation."""

from collections import Counter
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.rundir.reader import RecordReader, with_status
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.rundir.tables import Table
from tests.data.runs import lost, operation, outcome, record

PLANNED = 5


@st.composite
def received(draw: st.DrawFn) -> Outcome:
    """Anything that a driver may record about one invocation, of any wave."""
    index, launch = draw(st.integers(0, PLANNED - 1)), draw(st.integers(0, 3))
    kind = draw(st.sampled_from(["ok", "failed", "refused", "lost", "never began"]))
    result: InvocationRecord | Lost
    if kind in {"lost", "never began"}:
        result = replace(lost(index), not_started=kind == "never began")
    else:
        error = {"ok": None, "failed": "raised", "refused": "duplicate: another has it"}[kind]
        operations = [operation()] if kind == "ok" else []
        result = replace(record(index, operations, error=error), duplicate=kind == "refused")
    return outcome(replace(result, launch=launch))


def table_of(outcomes: list[Outcome]) -> Table:
    reader = RecordReader(PLANNED, frozenset())
    waves: list[dict[str, Any]] = [
        {"wave": {"number": n, "created_ns": 0, "count": 1, "files": {}}} for n in (1, 2)
    ]
    reader.read(map(orjson.dumps, [*(one.to_json() for one in outcomes), *waves]))
    assert (reader.skipped, len(reader.waves)) == (0, 2)
    return with_status(reader.functions.finish(), PLANNED)


def moved(one: Outcome) -> bool:
    """Whether it is the record of a delivery that had the launch."""
    return isinstance(one.result, InvocationRecord) and not one.result.duplicate


@given(st.lists(received(), max_size=30))
def test_both_identities_hold_for_any_records(outcomes: list[Outcome]) -> None:
    counts = Counter(table_of(outcomes)["status"])
    assert counts["ok"] + counts["failed"] + counts["lost"] == PLANNED
    records = sum(isinstance(one.result, InvocationRecord) for one in outcomes)
    assert counts["ok"] + counts["failed"] + counts["duplicate"] == records
    assert set(counts) <= {"ok", "failed", "lost", "duplicate", "superseded"}


@given(st.lists(received(), max_size=30))
def test_every_planned_invocation_has_one_row_that_counts(outcomes: list[Outcome]) -> None:
    table = table_of(outcomes)
    for index in range(PLANNED):
        rows = table["index"] == index
        counting = [s for s in table["status"][rows] if s in {"ok", "failed", "lost"}]
        mine = [one.result for one in outcomes if moved(one) and one.result.index == index]
        if any(isinstance(one, InvocationRecord) and one.ok for one in mine):
            assert counting == ["ok"], "one that is ok counts, whatever else came"
        else:
            assert counting == ["failed" if mine else "lost"]


@given(st.lists(received(), max_size=30))
def test_a_refused_delivery_never_counts(outcomes: list[Outcome]) -> None:
    table = table_of(outcomes)
    assert set(table["status"][table["duplicate"] == 1]) <= {"duplicate"}


@given(st.lists(received(), max_size=30))
def test_losses_have_a_cause(outcomes: list[Outcome]) -> None:
    table = table_of(outcomes)
    assert all(table["error"][table["status"] == "lost"])
