import csv
import io
import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from serverless_bench.base.errors import PluginError
from serverless_bench.features.formats.export import export
from serverless_bench.features.formats.exporters import EXPORTERS
from serverless_bench.features.formats.exporters.warp import COLUMNS
from serverless_bench.features.formats.importers import read_results
from serverless_bench.features.formats.importers.base import Hints
from serverless_bench.features.formats.importing import save
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import summarize
from serverless_bench.metrics.timeline import function_spans, good_operations
from serverless_bench.rundir.run import Run, load_run
from tests.data.oplogs import BEGIN, WARP
from tests.data.runs import S, job, lost, operation, outcome, record, saved

MS = S // 1000


def at(index: int, start_ms: int, end_ms: int, **more: object) -> object:
    return operation(index, start_ns=BEGIN + 1 + start_ms * MS, end_ns=BEGIN + end_ms * MS, **more)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two successful functions, a failed one, a lost one and a duplicate."""
    get = OperationKind.GET
    one = record(0, [at(0, 0, 400, kind=get), at(1, 400, 1300, kind=get, size=777)])  # type: ignore[list-item]
    two = record(1, [at(0, 100, 800, size=123_456)])  # type: ignore[list-item]
    bad = record(2, [at(0, 200, 300, size=0, error="throttled")])  # type: ignore[list-item]
    outcomes = [outcome(one), outcome(two), outcome(bad), outcome(lost(3)), outcome(two)]
    return saved(tmp_path / "run", outcomes, of=job(number=4, workload="mixed"))


def exported(run: Run, name: str) -> bytes:
    out = io.BytesIO()
    EXPORTERS.load(name).write(run, out)
    return out.getvalue()


def again(tmp_path: Path, data: bytes, **output: str) -> Run:
    (tmp_path / "file").write_bytes(data)
    save(read_results(tmp_path / "file", Hints(**output)), tmp_path / "again")  # type: ignore[arg-type]
    return load_run(tmp_path / "again")


def span_ns(run: Run) -> int:
    good = good_operations(run)
    return int(run.operations["end_ns"][good].max() - run.operations["start_ns"][good].min())


def test_warps_columns_and_rows(run: Run) -> None:
    lines = exported(run, "warp").decode().splitlines()
    assert COLUMNS == WARP
    assert lines[0] == "\t".join(WARP)
    rows = list(csv.DictReader(lines[:-1], delimiter="\t"))
    assert [row["thread"] for row in rows] == ["0", "1", "2", "0"]
    assert [row["op"] for row in rows] == ["GET", "PUT", "PUT", "GET"]
    assert rows[0]["start"] == "2023-11-14T22:13:20.000000001Z"
    assert rows[0]["first_byte"] == "2023-11-14T22:13:20.040000000Z"
    assert rows[0]["last_byte"] == ""
    assert rows[1]["first_byte"] == ""
    assert rows[1]["last_byte"] == "2023-11-14T22:13:20.730000001Z"
    assert rows[2]["error"] == "throttled"
    assert rows[3]["duration_ns"] == str(900 * MS - 1)
    assert lines[-1] == "# sbench export --format warp, run run"


def test_warp_and_back(tmp_path: Path, run: Run) -> None:
    back = again(tmp_path, exported(run, "warp"))
    before, after = summarize(run), summarize(back)
    assert after.client == "warp"
    assert (after.bytes, after.operations) == (before.bytes, before.operations)
    assert (after.ok, after.failed) == (before.ok, before.failed)
    assert after.errors == {"throttled": 1}
    assert span_ns(back) == span_ns(run)
    np.testing.assert_array_equal(function_spans(back).bytes_per_s, function_spans(run).bytes_per_s)
    for name in ("start_ns", "end_ns", "first_byte_ns", "last_byte_sent_ns", "key", "kind"):
        wanted = run.functions["status"][run.operations["function"]] != "duplicate"
        assert list(back.operations[name]) == list(run.operations[name][wanted]), name


def test_a_key_with_a_tab_or_a_quote_stays_in_its_cell(tmp_path: Path, run: Run) -> None:
    run.operations["key"][0] = 'a\t"b"'
    assert len(again(tmp_path, exported(run, "warp")).operations["key"]) == 4


def test_more_functions_than_warp_numbers_threads(tmp_path: Path, run: Run) -> None:
    run.functions["index"][1] = (1 << 16) + 5
    lines = exported(run, "warp").decode().splitlines()
    rows = list(csv.DictReader(lines[:-1], delimiter="\t"))
    assert (rows[1]["client_id"], rows[1]["thread"]) == ("sbench1", "5")


def test_a_thread_of_warp_does_one_thing_at_a_time(tmp_path: Path) -> None:
    begins = (0, 1, 4, 5, 9)
    ops = [operation(n, start_ns=at * S, end_ns=(at + 4) * S) for n, at in enumerate(begins)]
    of = replace(job(number=2), load=Load(threads=2))
    run = saved(tmp_path / "run", [outcome(record(i, ops)) for i in range(2)], of=of)
    lines = exported(run, "warp").decode().splitlines()[:-1]
    rows = list(csv.DictReader(lines, delimiter="\t"))
    by_thread: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        by_thread.setdefault(row["thread"], []).append((row["start"], row["end"]))
    assert sorted(by_thread) == ["0", "1", "2", "3"]
    for spans in by_thread.values():
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_warp_has_names_for_metadata_operations(tmp_path: Path) -> None:
    kinds = ["get_range", "head", "list", "delete", "delete_many", "copy"]
    ops = [
        replace(operation(n, kind=OperationKind(kind)), count=10 if kind == "delete_many" else 1)
        for n, kind in enumerate(kinds)
    ]
    lines = exported(saved(tmp_path / "run", [outcome(record(0, ops))]), "warp").decode()
    rows = list(csv.DictReader(lines.splitlines()[:-1], delimiter="\t"))
    assert [row["op"] for row in rows] == ["GET", "STAT", "LIST", "DELETE", "DELETE", "COPY"]
    assert [row["n_objects"] for row in rows] == ["1", "1", "1", "1", "10", "1"]


def test_warm_up_stays_at_home(run: Run) -> None:
    warm = {**run.operations, "warmup": np.array([1, 0, 0, 0, 0])}
    assert exported(replace(run, operations=warm), "warp").count(b"\n") == 1 + 3 + 1


def test_pywren_and_back(tmp_path: Path, run: Run) -> None:
    data = exported(run, "pywren")
    rows = pickle.loads(data)  # noqa: TID251 - just written
    assert len(rows) == 2
    back = again(tmp_path, data)
    assert summarize(back).bytes == summarize(run).bytes
    assert span_ns(back) == pytest.approx(span_ns(run), abs=500)
    assert function_spans(back).bytes_per_s == pytest.approx(
        function_spans(run).bytes_per_s, rel=1e-6
    )
    export(run, tmp_path / "pickle", format="pywren")
    assert (tmp_path / "pickle").read_bytes() == data


def test_csv_and_parquet_are_the_operations(run: Run) -> None:
    text = pd.read_csv(io.BytesIO(exported(run, "csv")))
    binary = pd.read_parquet(io.BytesIO(exported(run, "parquet")))
    for frame in (text, binary):
        assert len(frame) == 5
        assert list(frame["invocation"]) == [0, 0, 1, 2, 1]
        assert list(frame["status"]) == ["ok", "ok", "ok", "failed", "duplicate"]
        assert int(frame["bytes"].sum()) == 1000 + 777 + 2 * 123_456
    assert list(text.columns) == list(binary.columns)
    assert binary["start"].iloc[0] == pd.Timestamp(BEGIN + 1, unit="ns", tz="UTC")
    assert [pd.Timestamp(end) for end in text["end"]] == list(binary["end"])


def test_a_run_without_operations(tmp_path: Path) -> None:
    empty = saved(tmp_path / "empty", [outcome(lost(0))])
    for name in EXPORTERS:
        assert exported(empty, name)
    assert exported(empty, "warp").count(b"\n") == 2


def test_an_unknown_format() -> None:
    with pytest.raises(PluginError, match="unknown exporter 'xlsx'") as caught:
        EXPORTERS.load("xlsx")
    assert caught.value.hint == "use one of csv, parquet, pywren, warp"


def test_a_key_is_no_formula_in_a_csv_table(tmp_path: Path) -> None:
    put = replace(operation(start_ns=0, end_ns=S, size=7), key="=HYPERLINK(1)")
    run = saved(tmp_path, [outcome(record(0, [put]))])
    frame = pd.read_csv(io.BytesIO(exported(run, "csv")))
    assert (list(frame["key"]), list(frame["bytes"])) == (["'=HYPERLINK(1)"], [7])
