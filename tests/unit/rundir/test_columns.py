"""Tables in blocks are the tables that they would be as arrays."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.base.errors import ArchiveError
from serverless_bench.metrics.summary import summarize
from serverless_bench.metrics.timeline import timeline
from serverless_bench.rundir.columns import BlockStore, TableBuilder
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.schema import LIMIT
from serverless_bench.rundir.tables import ABSENT, BlockTable, parts, rows_of
from tests.data.runs import operation, outcome, record, saved
from tests.house.features import features
from tests.house.members import uses
from tests.reference.making import Shape, save, shapes
from tests.tables import each_row

TYPES: Mapping[str, object] = {
    "function": int,
    "size": int | None,
    "took_s": float,
    "kind": str | None,
    "key": str,
}
ROWS = st.tuples(
    st.none() | st.integers(0, LIMIT - 1),
    st.floats(0, LIMIT, exclude_max=True),
    st.sampled_from(["get", "put", None]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)


@contextmanager
def in_blocks(rows: int, in_memory: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serverless_bench.rundir.columns.BLOCK_ROWS", rows)
        patch.setattr("serverless_bench.rundir.columns.IN_MEMORY_BYTES", in_memory)
        yield


@given(st.lists(st.lists(ROWS, max_size=5)), st.integers(1, 9), st.integers(0, 200))
def test_blocks_return_their_values(
    records: list[list[tuple[Any, ...]]], rows: int, in_memory: int
) -> None:
    with in_blocks(rows, in_memory):
        table = TableBuilder(TYPES, frozenset(), BlockStore())
        for function, record_ in enumerate(records):
            values = [*zip(*((function, *row) for row in record_), strict=True)]
            columns = dict(zip(TYPES, values or [()] * len(TYPES), strict=True))
            table.extend(columns, len(record_))
        found = table.finish()
    flat = [(function, *row) for function, record_ in enumerate(records) for row in record_]
    expected = [(f, ABSENT if size is None else size, *rest) for f, size, *rest in flat]
    assert [*zip(*(found[name].tolist() for name in TYPES), strict=True)] == expected
    pieces = [
        p for part in parts(found) for p in zip(*(part[n].tolist() for n in TYPES), strict=True)
    ]
    assert pieces == expected
    for function in range(len(records)):
        mine = rows_of(found, function, ["key"])["key"].tolist()
        assert mine == [row[-1] for row in expected if row[0] == function]


@settings(max_examples=60)
@given(shapes, st.booleans(), st.integers(1, 20), st.sampled_from([0, 500]))
def test_a_report_of_blocks_is_the_same(
    shape: Shape,
    with_warmup: bool,  # noqa: FBT001
    rows: int,
    in_memory: int,
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        save(path, shape)
        plain = load_run(path)
        with in_blocks(rows, in_memory):
            blocks = load_run(path)
        one, other = (summarize(run, with_warmup=with_warmup) for run in (plain, blocks))
        assert other.to_json() == one.to_json()
        if "check" in features():
            from serverless_bench.features.check.checked_run import variability

            assert variability(blocks, other) == variability(plain, one)
        assert curve(blocks) == curve(plain)


def curve(run: Run) -> list[Any] | None:
    try:
        found = timeline(run)
    except ValueError:
        return None
    return [getattr(found, name).tolist() for name in ("segment_bytes", "earliest", "latest")]


@uses("feature formats")
def test_frames_of_blocks_are_the_same(tmp_path: Path) -> None:
    from serverless_bench.features.formats.frames import frames_of

    outcomes = [outcome(record(i, [operation(0), operation(1)])) for i in range(5)]
    plain = saved(tmp_path / "run", outcomes)
    with in_blocks(3, 0):
        blocks = load_run(tmp_path / "run")
    assert isinstance(blocks.operations, BlockTable)
    for name in ("functions", "operations", "attempts", "progress"):
        assert getattr(frames_of(blocks), name).equals(getattr(frames_of(plain), name))


def test_a_full_disk_gives_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "run", [outcome(record(i, [operation()])) for i in range(5)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with in_blocks(1, 0), pytest.raises(ArchiveError, match="no room for the columns") as error:
        load_run(tmp_path / "run")
    assert "TMPDIR" in str(error.value.hint)


@each_row("size", [2**63, -(2**63) - 1, 1.5, "1", []])
def test_an_invalid_number_makes_a_line_unreadable(tmp_path: Path, size: Any) -> None:
    saved(tmp_path / "run", [outcome(record(0, [operation(0), operation(1)]))])
    records = tmp_path / "run" / "records.jsonl"
    text = records.read_text(encoding="utf-8")
    value = f'"{size}"' if isinstance(size, str) else str(size)
    for damaged in (f'"size":[{value},1000]', f'"size":[{value},{value}]'):
        records.write_text(text.replace('"size":[1000,1000]', damaged), encoding="utf-8")
        run = load_run(tmp_path / "run")
        assert (run.skipped_lines, len(run.operations["size"])) == (1, 0)


def test_columns_are_arrays_that_one_may_change(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [outcome(record(0, [operation()]))])
    run.operations["size"][0] = 7
    assert np.array_equal(run.operations["size"], [7])
