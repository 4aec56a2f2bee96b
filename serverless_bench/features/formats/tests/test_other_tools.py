"""What other tools write today, and wrote once: phases, batches, names of operations and fields."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.features.formats.importers import read_results
from serverless_bench.features.formats.importers.base import Hints, Imported
from serverless_bench.features.formats.importing import save
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.rundir.run import load_run
from tests.data import pickles
from tests.data.oplogs import BEGIN, SAI3, WARP, Request, S, oplog


def imported(tmp_path: Path, content: str | bytes) -> Imported:
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_results(path, Hints())


def summary_of(tmp_path: Path, content: str | bytes) -> Summary:
    save(imported(tmp_path, content), tmp_path / "run")
    return summarize(load_run(tmp_path / "run"))


def phase(op: str, begin_s: float, count: int = 10) -> list[Request]:
    """One operation after the other, each of a second."""
    begin_ns = BEGIN + round(begin_s * S)
    return [
        Request(op=op, start_ns=begin_ns + i * S, end_ns=begin_ns + (i + 1) * S)
        for i in range(count)
    ]


def rates(summary: Summary) -> dict[str, float | None]:
    rows = (row for row in summary.latencies.by_kind if row.size_class is None)
    return {row.kind: row.operations_per_s for row in rows}


@pytest.mark.parametrize("columns", [WARP, SAI3])
@pytest.mark.parametrize(("op", "kind"), [("GET", "get"), ("STAT", "head"), ("LIST", "list")])
def test_preparation_is_no_part_of_the_measurement(
    tmp_path: Path, columns: Sequence[str], op: str, kind: str
) -> None:
    log = oplog([*phase("PUT", 0), *phase(op, 13)], columns)
    summary = summary_of(tmp_path, log)
    assert rates(summary) == {kind: 1.0}
    assert (summary.elapsed_s, summary.warmup_operations) == (10.0, 10)
    assert summary.withheld == ()


def test_deletions_at_the_end_are_cleanup_or_the_measurement(tmp_path: Path) -> None:
    cleaned = summary_of(
        tmp_path, oplog([*phase("PUT", 0), *phase("GET", 10), *phase("DELETE", 20)])
    )
    assert rates(cleaned) == {"get": 1.0}
    (tmp_path / "2").mkdir()
    measured = summary_of(tmp_path / "2", oplog([*phase("PUT", 0), *phase("DELETE", 20)]))
    assert rates(measured) == {"delete": 1.0}


def test_where_the_measurement_writes_a_pause_tells_preparation_apart(tmp_path: Path) -> None:
    mixture = [*phase("GET", 13), *phase("PUT", 13.5)]
    assert summary_of(tmp_path, oplog([*phase("PUT", 0), *mixture])).warmup_operations == 10
    (tmp_path / "2").mkdir()
    turns = [one for i in range(5) for op in ("PUT", "GET") for one in phase(op, 2 * i, 1)]
    assert summary_of(tmp_path / "2", oplog(turns)).warmup_operations == 0


def test_each_kind_is_divided_by_its_own_time(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, oplog([*phase("GET", 0), *phase("STAT", 20)]))
    assert rates(summary) == {"get": 1.0, "head": 1.0}
    assert summary.elapsed_s == 30.0


def test_a_batch_counts_its_objects(tmp_path: Path) -> None:
    lines = oplog(phase("DELETE", 0, 30), SAI3).splitlines()
    place = SAI3.index("n_objects")
    for i, line in enumerate(lines[1:-1], start=1):
        cells = line.split("\t")
        cells[place] = "100"
        lines[i] = "\t".join(cells)
    summary = summary_of(tmp_path, "\n".join(lines))
    (row,) = (row for row in summary.latencies.by_kind if row.size_class is None)
    assert (row.kind, row.ok, row.keys) == ("delete_many", 30, 3000)


@pytest.mark.parametrize("op", ["PUTPART", "APPEND", "POST", "BULKPUT", "UPLOAD"])
def test_uploads_have_many_names(tmp_path: Path, op: str) -> None:
    one = imported(tmp_path, oplog(phase(op, 0)))
    assert (one.workload, len(one.rows), one.remarks["left_out"]) == ("write", 10, {})
    assert sum(one.rows.size_bytes) == 10_000


def test_names_of_pywren_for_ibm_cloud_are_those_of_lithops(tmp_path: Path) -> None:
    data = pickles.lithops(pickles.tuples(read=True))
    older = {
        "host_submit_tstamp": "host_submit_time",
        "worker_start_tstamp": "start_time",
        "worker_end_tstamp": "end_time",
        "host_result_done_tstamp": "download_output_timestamp",
    }
    data["run_statuses"] = [
        {older[name]: value for name, value in row.items() if name in older}
        for row in data.pop("worker_stats")
    ]
    one = imported(tmp_path, pickle.dumps(data))
    assert (one.tool, one.remarks["worker_times"]) == ("lithops", True)
    assert all(call.submitted_ns > 0 and call.start_ns for call in one.calls)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"start_time": 1.6e9, "worker_stats": [{}], "results": [{"flops": 1e10}]}),
        pickle.dumps({"run_statuses": [{}], "results": [{"flops": 1e10}]}),
        pickle.dumps([(1.6e9, 1.7e9)]),
        b"import zlib\n\n\ndef mine(context):\n    return 1\n",
        b"(a comment, and no pickle)\n",
    ],
    ids=["lithops", "pywren", "pairs", "program", "text"],
)
def test_what_is_no_result_is_not_called_damaged(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        imported(tmp_path, content)
    assert "damaged, or a clock" not in caught.value.hint
    assert "can run code" not in caught.value.hint
