"""A received record equals the sent one; its tables stay columns."""

from dataclasses import fields, replace
from typing import Any

import orjson

from serverless_bench.executors.base import read_record
from serverless_bench.rundir.record import (
    END_NS,
    ERROR,
    START_NS,
    TABLES,
    InvocationRecord,
    Lost,
    OperationRecord,
)
from tests.data.runs import operation, outcome, record
from tests.tables import each_row

SENT = record(3, [operation(0), operation(1, error="timeout"), operation(2, bad_bytes=7)])


def received(sent: InvocationRecord) -> InvocationRecord:
    found = read_record(orjson.dumps(sent.to_json()), sent.index, 0)
    assert isinstance(found, InvocationRecord)
    return found


def test_it_is_written_as_it_came() -> None:
    assert received(SENT).to_json() == SENT.to_json()
    assert outcome(received(SENT)).to_json() == outcome(SENT).to_json()


def test_its_rows_are_those_that_were_sent() -> None:
    found = received(SENT)
    for name in TABLES:
        assert getattr(found, name) == getattr(SENT, name)
    assert (found.index, found.worker_id, found.ok) == (3, "w3", False)
    assert received(record(0, [operation()])).ok
    assert not received(record(0, [operation()], error="raised")).ok


def test_a_copy_of_it_has_all_of_it() -> None:
    copy = replace(received(SENT), index=4)
    assert copy.to_json() == {**SENT.to_json(), "index": 4}
    assert not copy.ok
    assert replace(received(SENT)) == received(SENT)


@each_row(
    "change",
    [
        {"surprise": 1},
        {"operations": {}, "index": None, "worker_id": ...},
        {"operations": {"index": [0]}},
        {"operations": []},
        {"operations": {**SENT.to_json()["operations"], "surprise": [1, 2, 3]}},
        {"operations": {**SENT.to_json()["operations"], "size": [1]}},
        {"operations": {**SENT.to_json()["operations"], "kind": ["put", "put", "burn"]}},
        {"operations": {**SENT.to_json()["operations"], "kind": [["put"], "put", "get"]}},
        {"steps": 5},
        {"steps": {"operation": "0", "step_ns": [1], "step_bytes": [1]}},
    ],
)
def test_an_invalid_record_is_a_loss_with_a_reason(change: dict[str, Any]) -> None:
    data = {n: v for n, v in {**SENT.to_json(), **change}.items() if v is not ...}
    found = read_record(orjson.dumps(data), 3, 1)
    assert isinstance(found, Lost)
    assert (found.index, found.launch) == (3, 1)
    assert "unreadable record" in found.cause


def test_places_in_a_row_are_those_of_the_fields() -> None:
    names = [one.name for one in fields(OperationRecord)][1:]
    assert (names[START_NS], names[END_NS], names[ERROR]) == ("start_ns", "end_ns", "error")
