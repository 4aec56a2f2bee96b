import io
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.features.formats.importers import IMPORTERS, read_results
from serverless_bench.features.formats.importers.base import Hints, Imported
from serverless_bench.features.formats.importers.oplog import error_code
from serverless_bench.features.formats.importing import save
from serverless_bench.job.keys import declared_size
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import ABSENT
from tests.data import oplogs, pickles
from tests.data.oplogs import BEGIN, SAI3, WARP, Request, S, oplog
from tests.data.pickles import BEGIN_S, MB
from tests.tables import each_row

NOTHING = Hints()


def imported(path: Path, content: bytes | str, **options: Any) -> Imported:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    name = options.pop("name", None)
    return read_results(path, Hints(**options), name=name)


def run_of(
    tmp_path: Path, content: bytes | str, network_rate: float | None = None, **options: Any
) -> Run:
    save(
        imported(tmp_path / "file", content, **options), tmp_path / "run", network_rate=network_rate
    )
    return load_run(tmp_path / "run")


def total(tmp_path: Path, content: bytes | str, **options: Any) -> tuple[Run, Summary]:
    run = run_of(tmp_path, content, **options)
    return run, summarize(run)


# PyWren


@each_row("protocol", range(6))
def test_pywren_writes_have_the_bytes_of_rate_and_time(tmp_path: Path, protocol: int) -> None:
    run, summary = total(tmp_path, pickle.dumps(pickles.tuples(), protocol))
    assert (summary.workload, summary.client, summary.executor) == ("write", "pywren", "imported")
    assert (summary.requested, summary.ok, summary.lost) == (4, 4, 0)
    assert summary.bytes == 4 * 512 * MB
    assert summary.elapsed_s == 10.0
    assert summary.verified_bytes == 0
    assert run.job.size == 512 * MB
    assert run.provenance["source"]["bytes"] == "rate times duration, rounded"
    assert run.provenance["client"] == {"attempts": "hidden", "progress": "none"}
    assert summary.makespan_s is None


def test_pywren_reads_have_bytes_of_their_own(tmp_path: Path) -> None:
    run, summary = total(tmp_path, pickle.dumps(pickles.tuples(read=True)))
    assert (summary.workload, summary.bytes, summary.unknown_objects) == ("read", 4 * 512 * MB, 4)
    assert run.provenance["source"]["bytes"] == "as recorded"
    assert set(run.operations["size"]) == {ABSENT}


def test_a_mean_rate_is_one_step_and_one_try(tmp_path: Path) -> None:
    run = run_of(tmp_path, pickle.dumps(pickles.tuples(2)))
    assert run.steps["step_ns"].tolist() == [4 * S, 5 * S]
    assert run.steps["step_bytes"].tolist() == [512 * MB] * 2
    assert list(run.attempts["request"]) == ["put", "put"]
    assert run.attempts["bytes"].tolist() == [512 * MB] * 2


def test_the_user_says_phase_and_size(tmp_path: Path) -> None:
    run, summary = total(
        tmp_path, pickle.dumps(pickles.tuples(2)), phase="read", size_bytes=512 * MB + 1
    )
    assert (summary.workload, summary.bytes) == ("read", 2 * (512 * MB + 1))
    assert run.provenance["source"]["bytes"] == "--size"


def test_a_guess_is_reported(tmp_path: Path) -> None:
    (note,) = imported(tmp_path / "p", pickle.dumps(pickles.tuples())).notes
    assert "--phase read" in note
    assert imported(tmp_path / "p", pickle.dumps(pickles.tuples()), phase="write").notes == ()


def test_reads_are_no_writes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="these are not writes"):
        imported(tmp_path / "p", pickle.dumps(pickles.tuples(read=True)), phase="write")


def test_pywrens_dict_has_keys_bucket_and_worker_times(tmp_path: Path) -> None:
    rows = pickles.tuples(3)
    data = {
        "results": rows,
        "run_statuses": [
            {"start_time": r[0] - 1, "end_time": r[1] + 1, "runtime_cached": i > 0}
            for i, r in enumerate(rows)
        ],
        "invoke_statuses": [{}] * 3,
        "bucket_name": "jonas",
        "keynames": ["A" * 32, "B" * 32, "C" * 32],
    }
    run, summary = total(tmp_path, pickle.dumps(data, 2))
    assert run.job.target.bucket == "jonas"
    assert list(run.operations["key"]) == data["keynames"]
    assert run.functions["start_ns"][0] == round((BEGIN_S - 1) * S)
    assert summary.cold_starts == 1
    assert all(declared_size(key) is None for key in run.keys())  # noqa: SIM118 - a method of Run


def test_rates_that_contradict_bytes_are_reported(tmp_path: Path) -> None:
    rows = [
        (start, stop, rate * 2, *more) for start, stop, rate, *more in pickles.tuples(read=True)
    ]
    notes = imported(tmp_path / "p", pickle.dumps(rows)).notes
    assert any("4 rates differ from bytes over time" in note for note in notes)


# Lithops


def test_lithops_reads(tmp_path: Path) -> None:
    run, summary = total(tmp_path, pickle.dumps(pickles.lithops(pickles.tuples(read=True))))
    assert (summary.client, summary.workload, summary.ok) == ("lithops", "read", 4)
    assert summary.bytes == 4 * 512 * MB
    assert summary.cold_starts == 2
    assert run.created_ns == round((BEGIN_S - 3) * S)
    assert run.functions["submitted_ns"].tolist() == [
        round((BEGIN_S + i - 2) * S) for i in range(4)
    ]
    assert summary.makespan_s == pytest.approx(14.0)
    assert run.provenance["source"]["worker_times"] is True


def test_known_answers(tmp_path: Path) -> None:
    """100 functions at 100 MB/s for 5 s, with one start every 20 ms."""
    rows = [(BEGIN_S + i / 50, BEGIN_S + i / 50 + 5, 100.0, 500 * MB) for i in range(100)]
    _, summary = total(tmp_path, pickle.dumps(pickles.lithops(rows)))
    assert summary.throughput_bytes_per_s == pytest.approx(50e9 / 6.98, rel=1e-6)
    assert summary.per_function_bytes_per_s is not None
    assert summary.per_function_bytes_per_s["p50"] == pytest.approx(100e6, rel=1e-6)
    assert summary.peak_1s_bytes_per_s == pytest.approx(10e9, rel=1e-3)
    assert summary.completion_s["max"] == pytest.approx(6.98)


def test_missing_functions_are_lost(tmp_path: Path) -> None:
    data = pickles.lithops(pickles.tuples(10), read=False, keys=10)
    del data["results"][3], data["results"][7]
    run, summary = total(tmp_path, pickle.dumps(data))
    assert (summary.requested, summary.ok, summary.lost) == (10, 8, 2)
    assert summary.errors == {"no result in the file": 2}
    # The file does not say which functions are missing, so no value is taken from rows of others.
    assert set(run.operations["key"]) == {""}
    assert summary.cold_starts == 0
    notes = imported(tmp_path / "again", pickle.dumps(data)).notes
    assert any("10 functions were requested and 8 have a result" in note for note in notes)
    assert any("do not match the results" in note for note in notes)


def test_an_empty_result_is_lost_at_its_index(tmp_path: Path) -> None:
    data = pickles.lithops(pickles.tuples(4), read=False, keys=4)
    data["results"][1] = None
    run, summary = total(tmp_path, pickle.dumps(data))
    assert (summary.ok, summary.lost) == (3, 1)
    assert run.functions["index"][run.functions["status"] == "lost"].tolist() == [1]
    assert list(run.operations["key"])[1] == f"{2:032X}"


def test_statistics_of_other_functions_are_not_believed(tmp_path: Path) -> None:
    data = pickles.lithops(pickles.tuples(4, read=True))
    data["worker_stats"].reverse()
    run, summary = total(tmp_path, pickle.dumps(data))
    assert set(run.functions["submitted_ns"]) == {ABSENT}
    assert summary.makespan_s is None


# Files that are not pickles, or that contain more


class Runs:
    """Unpickling it makes a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@each_row("protocol", range(6))
def test_a_pickle_that_runs_code_is_refused_and_has_not_run(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    for value in (Runs(made), [Runs(made)], {"results": [(1.0, 2.0, Runs(made))]}):
        # The first protocols have no mark of their own: such a file may be a text.
        words = "is rejected: it is not plain data|not a complete pickle"
        with pytest.raises(UsageError, match=words):
            imported(tmp_path / "p", pickle.dumps(value, protocol))
    assert not made.exists()


class _Persistent(pickle.Pickler):
    def persistent_id(self, obj: object) -> str | None:
        return "somewhere" if obj == "away" else None


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_persistent_ids_are_refused(tmp_path: Path, protocol: int) -> None:
    file = io.BytesIO()
    _Persistent(file, protocol).dump(["away"])
    with pytest.raises(UsageError, match="is rejected"):
        imported(tmp_path / "p", file.getvalue())


@each_row("value", [np.float64(1.0), Path("x"), 1j, {1, 2}, bytearray(b"x"), BEGIN_S.__class__])
def test_every_class_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(UsageError, match="is rejected"):
        imported(tmp_path / "p", pickle.dumps([value], 5))


@each_row(
    "data",
    [
        b"",
        b"\x80",
        b"\x80\x02.",
        b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"K\x01s.",
        b"\x80\x02Nr\xff\xff\xff\x7f.",
        b"\x80\x05\x8d" + struct.pack("<Q", 1 << 62) + b".",
        b"\x80\x02]K\x01K\x02s.",
        b"\x80\x02h\x00.",
        b"\x80\x02a.",
        b"\x80\x02t.",
        b"\x80\x02NN.",
    ],
)
def test_hostile_and_broken_pickles_are_one_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError):
        imported(tmp_path / "p", data)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_pickle_that_is_cut_off(tmp_path: Path, share: float) -> None:
    data = pickle.dumps(pickles.lithops(pickles.tuples(read=True)))
    with pytest.raises(UsageError, match="cut off or damaged"):
        imported(tmp_path / "p", data[: int(len(data) * share)])


def test_a_pickle_may_not_be_huge(tmp_path: Path) -> None:
    path = tmp_path / "p"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(UsageError, match="too large"):
        read_results(path, NOTHING)


NAN, INF = float("nan"), float("inf")


@each_row(
    ("row", "why"),
    [
        ((1.0, 2.0), "is not"),
        ((1.0, 2.0, 3.0, 4), "is not"),
        (("1", 2.0, 3.0), "an invalid start"),
        ((NAN, 2.0, 3.0), "an invalid start"),
        ((-1.0, 2.0, 3.0), "an invalid start"),
        ((True, 2.0, 3.0), "an invalid start"),
        ((1.0, INF, 3.0), "an invalid end"),
        ((1.0, 1e300, 3.0), "an invalid end"),
        ((2.0, 1.0, 3.0), "ends before it starts"),
        ((1.0, 2.0, NAN), "an invalid rate"),
        ((1.0, 2.0, -3.0), "an invalid rate"),
        ((1.0, 2.0, 10**400), "an invalid rate"),
        ((1.0, 2.0, 3.0, -1, ""), "an invalid number of bytes"),
        ((1.0, 2.0, 3.0, 1 << 60, ""), "an invalid number of bytes"),
        ((0.0, 8e9, 1e9), "more bytes than any object"),
        ((0.0, 8e9, 0.001), "days apart"),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, row: tuple[Any, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        imported(tmp_path / "p", pickle.dumps([row]))


@each_row(
    "value", [None, 7, "text", {}, {"results": 3}, {"results": {}}, [1], [{}], {"results": [1]}]
)
def test_other_plain_data_is_no_result(tmp_path: Path, value: object) -> None:
    with pytest.raises(UsageError):
        imported(tmp_path / "p", pickle.dumps(value))


@pytest.mark.parametrize("value", [[], {"results": []}, {"results": [], "worker_stats": []}])
def test_a_file_without_results_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(UsageError, match="has no operation"):
        imported(tmp_path / "p", pickle.dumps(value))


# Op-logs

TWO_THREADS = [
    Request(thread=1, start_ns=BEGIN, end_ns=BEGIN + S, first_byte_ns=BEGIN + 5),
    Request(thread=0, start_ns=BEGIN, end_ns=BEGIN + 2 * S, key="a/b"),
    Request(thread=1, start_ns=BEGIN + S, end_ns=BEGIN + 3 * S + 123_456_789),
]


@pytest.mark.parametrize("packed", [bytes, zstandard.ZstdCompressor().compress])
def test_an_op_log_is_one_function_per_thread(
    tmp_path: Path, packed: Callable[[bytes], bytes]
) -> None:
    run, summary = total(tmp_path, packed(oplog(TWO_THREADS).encode()), network_rate=2.5e9)
    assert (summary.client, summary.workload, summary.requested) == ("warp", "read", 2)
    assert (summary.operations, summary.bytes) == (3, 3000)
    assert run.job.concurrency == 2
    assert run.job.network_rate == 2.5e9
    assert run.job.target.endpoint_url == "http://store:9000"
    assert list(run.functions["worker_id"]) == ["abcd/0", "abcd/1"]
    assert run.operations["function"].tolist() == [0, 1, 1]
    assert run.operations["start_ns"].tolist() == [BEGIN, BEGIN, BEGIN + S]
    assert run.operations["end_ns"][2] == BEGIN + 3 * S + 123_456_789
    assert run.operations["first_byte_ns"].tolist() == [ABSENT, BEGIN + 5, ABSENT]
    assert run.operations["key"][0] == "a/b"
    assert summary.verified_bytes == 0


@pytest.mark.parametrize("columns", [WARP, SAI3, tuple(c for c in WARP if c != "last_byte")])
def test_columns_are_found_by_name(tmp_path: Path, columns: tuple[str, ...]) -> None:
    run = run_of(tmp_path, oplog(TWO_THREADS, columns))
    assert run.job.target.client == "warp"
    assert int(run.operations["bytes"].sum()) == 3000


def test_puts_have_a_last_byte(tmp_path: Path) -> None:
    put = Request(op="PUT", start_ns=BEGIN, end_ns=BEGIN + 9, last_byte_ns=BEGIN + 7)
    run, summary = total(tmp_path, oplog([put]))
    assert (summary.workload, run.job.size) == ("write", 1000)
    assert run.operations["last_byte_sent_ns"].tolist() == [BEGIN + 7]
    assert run.keys() == ["prefix/object.rnd"]
    assert run.ledger() == []


def test_all_kinds_are_operations_and_unknown_ones_are_counted(tmp_path: Path) -> None:
    kinds = ["GET", "PUT", "STAT", "DELETE", "STAT", "LIST", "MULTIPART"]
    log = oplog(
        Request(op=op, start_ns=BEGIN + i * S, end_ns=BEGIN + i * S + 5)
        for i, op in enumerate(kinds)
    )
    one = imported(tmp_path / "log", log)
    assert (one.workload, len(one.rows)) == ("mixed", 6)
    assert one.notes == ("dropped, as their kind is unknown: 1 MULTIPART",)
    run, summary = total(tmp_path, log)
    assert run.operations["kind"].tolist() == ["get", "put", "head", "delete", "head", "list"]
    # Their objects are in the file, but they transfer no bytes.
    assert run.operations["bytes"].tolist() == [1000, 1000, 0, 0, 0, 0]
    rows = {row.kind: row.ok for row in summary.latencies.by_kind if row.size_class is None}
    assert rows == {"get": 1, "put": 1, "head": 2, "delete": 1, "list": 1}
    assert summary.withheld == ()


def test_failed_requests_are_failed_operations(tmp_path: Path) -> None:
    log = oplog(
        [
            Request(start_ns=BEGIN, end_ns=BEGIN + S),
            Request(start_ns=BEGIN + S, end_ns=BEGIN + 2 * S, error="503 Slow Down"),
        ]
    )
    run, summary = total(tmp_path, log)
    assert (summary.failed, summary.failed_operations, summary.bytes) == (1, 1, 1000)
    assert summary.errors == {"throttled": 1}
    assert list(run.attempts["detail"]) == [None, "503 Slow Down"]
    assert len(run.steps["function"]) == 1


def test_quoted_errors_may_have_line_ends(tmp_path: Path) -> None:
    quoted = '"Get ""http://store"": EOF\nand more"'
    run = run_of(tmp_path, oplog([Request(start_ns=BEGIN, end_ns=BEGIN + S, error=quoted)]))
    assert list(run.attempts["detail"]) == ['Get "http://store": EOF\nand more']
    assert list(run.operations["error"]) == ["connection_error"]


@each_row(
    ("text", "code"),
    [
        ("SlowDown: Please reduce your request rate.", "throttled"),
        ("The specified key does not exist.", "not_found"),
        ("Access Denied.", "access_denied"),
        ("context deadline exceeded", "timeout"),
        ("We encountered an internal error, please try again.", "server_error"),
        ("read tcp 10.0.0.1:1->10.0.0.2:2: read: connection reset by peer", "connection_error"),
        ("unexpected download size. want: 10, got: 5", "bad_response"),
        ("400 Bad Request", "bad_request"),
        ("who knows", "error"),
    ],
)
def test_errors_get_the_words_of_errors_py(text: str, code: str) -> None:
    assert error_code(text) == code


def test_sai3_has_no_first_bytes(tmp_path: Path) -> None:
    log = oplog([Request(start_ns=BEGIN, end_ns=BEGIN + S, first_byte_ns=BEGIN + S)], SAI3)
    run, summary = total(tmp_path, log)
    assert (run.job.target.client, summary.ttfb_s) == ("sai3", None)
    assert imported(tmp_path / "again", log, name="warp").tool == "warp"


def test_threads_of_a_runtime_become_as_many_calls_as_ran_at_once(tmp_path: Path) -> None:
    requests = [
        Request(start_ns=BEGIN, end_ns=BEGIN + 3 * S),
        Request(start_ns=BEGIN + S, end_ns=BEGIN + 2 * S),
        Request(start_ns=BEGIN + 2 * S, end_ns=BEGIN + 4 * S),
        Request(start_ns=BEGIN + 3 * S, end_ns=BEGIN + 4 * S, thread=7),
    ]
    one = imported(tmp_path / "log", oplog(requests, SAI3))
    assert [call.worker_id for call in one.calls] == ["abcd/0/0", "abcd/0/1", "abcd/7/0"]
    assert one.rows.function.tolist() == [0, 1, 1, 2]
    assert any("distributed over 3 function calls" in note for note in one.notes)
    warps = imported(tmp_path / "again", oplog(requests, SAI3), name="warp")
    assert (len(warps.calls), len(warps.notes)) == (2, 1)


def test_zones_and_fractions(tmp_path: Path) -> None:
    log = oplog([Request(start_ns=BEGIN, end_ns=BEGIN + S)])
    at = oplogs.instant(BEGIN).removesuffix("Z")
    assert at == "2023-11-14T22:13:20"
    log = log.replace(f"{at}Z", "2023-11-14T23:43:20.5+01:30").replace(
        "22:13:21Z", "22:13:21.000000001Z"
    )
    run = run_of(tmp_path, log)
    assert run.operations["start_ns"].tolist() == [BEGIN + S // 2]
    assert run.operations["end_ns"].tolist() == [BEGIN + S + 1]


def test_a_clock_that_was_set_is_reported(tmp_path: Path) -> None:
    log = oplog([Request(start_ns=BEGIN, end_ns=BEGIN + S)]).replace("\t1000000000\t", "\t5\t")
    (note,) = imported(tmp_path / "log", log).notes
    assert "a clock was set" in note


def test_a_first_byte_outside_its_operation_is_left_out(tmp_path: Path) -> None:
    log = oplog([Request(start_ns=BEGIN, end_ns=BEGIN + S, first_byte_ns=BEGIN + 2 * S)])
    one = imported(tmp_path / "log", log)
    assert one.rows.first_byte_ns.tolist() == [ABSENT]
    assert len(one.notes) == 1


GOOD_LINE = oplog([Request(start_ns=BEGIN, end_ns=BEGIN + S)]).splitlines()[1]


@each_row(
    ("old", "new", "why"),
    [
        ("22:13:21Z", "22:13:19Z", "line 2 ends before it starts"),
        ("\t1000\t", "\t-1000\t", "negative number of bytes"),
        ("\t1000\t", "\t1000000000000000000\t", "more bytes than any object"),
        ("\t1000\t", "\t99999999999999999999\t", "line 2 is invalid"),
        ("\t1000\t", "\tmany\t", "line 2 is invalid"),
        ("2023-11-14T22:13:21Z", "2023-13-14T22:13:21Z", "line 2 is invalid"),
        ("2023-11-14T22:13:21Z", "yesterday", "line 2 is invalid"),
        ("2023-11-14T22:13:21Z", "2024-11-14T22:13:21Z", "days apart"),
        ("2023-11-14T22:13:21Z", "9023-11-14T22:13:21Z", "is invalid"),
        ("\tGET\t", "\tMULTIPART\t", "has no operation"),
        ("\tGET\t", "\t", "line 2 is invalid"),
        ("\tduration_ns", "\tdura\rtion_ns", "line 1 is invalid"),
        ("\tduration_ns", "\tduration", "the column 'duration_ns'"),
    ],
)
def test_op_logs_that_cannot_be_are_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    log = oplog([Request(start_ns=BEGIN, end_ns=BEGIN + S)])
    assert old in log
    with pytest.raises(UsageError, match=why):
        imported(tmp_path / "log", log.replace(old, new))


def test_hints_are_for_pickles(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--phase and --size are for pickles"):
        imported(tmp_path / "log", oplog(TWO_THREADS), phase="read")


def test_warps_usual_output_has_no_requests(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        imported(tmp_path / "f", zstandard.ZstdCompressor().compress(b'{"v": 2}'))
    assert "--full" in caught.value.hint


def test_a_compressed_log_that_is_cut_off(tmp_path: Path) -> None:
    whole = zstandard.ZstdCompressor().compress(oplogs.impossible(1).encode())
    with pytest.raises(UsageError):
        imported(tmp_path / "log", whole[: len(whole) // 2])


def test_the_impossible_log_keeps_its_figures(tmp_path: Path) -> None:
    run = run_of(tmp_path, oplogs.impossible(), network_rate=2.5e9)
    operations = run.operations
    span_ns = int(operations["end_ns"].max() - operations["start_ns"].min())
    assert int(operations["bytes"].sum()) * S / span_ns == pytest.approx(2635 * 32e6, rel=1e-3)
    assert run.job.network_rate == 2.5e9
    assert run.job.concurrency == run.job.number == 64


# The name


def test_the_content_decides_unless_the_user_does(tmp_path: Path) -> None:
    lithops = pickle.dumps(pickles.lithops(pickles.tuples()))
    assert imported(tmp_path / "p", lithops).tool == "lithops"
    assert imported(tmp_path / "p", lithops, name="lithops").tool == "lithops"
    for name in IMPORTERS:
        if name != "lithops":
            with pytest.raises(UsageError, match=f"--from {name}"):
                imported(tmp_path / "p", lithops, name=name)
    with pytest.raises(PluginError, match="unknown importer 'cosbench'"):
        imported(tmp_path / "p", lithops, name="cosbench")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_results(tmp_path / "none", NOTHING)


# Every file is either imported or refused

VALID = [
    pickle.dumps(pickles.tuples(2), 0),
    pickle.dumps(pickles.tuples(2, read=True), 2),
    pickle.dumps(pickles.lithops(pickles.tuples(2, read=True), keys=2), 4),
    oplog(TWO_THREADS).encode(),
    oplog(TWO_THREADS, SAI3).encode(),
    zstandard.ZstdCompressor().compress(oplog(TWO_THREADS).encode()),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        until = min(len(data), at + draw(st.integers(0, 12)))
        data[at:until] = draw(st.binary(max_size=12))
    return bytes(data)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=mutated(), phase=st.sampled_from([None, "read", "write"]))
def test_any_file_is_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, phase: str | None
) -> None:
    directory = tmp_path_factory.mktemp("fuzz")
    (directory / "file").write_bytes(data)
    try:
        one = read_results(directory / "file", Hints(phase=phase))
    except UsageError as exc:
        lines = str(exc).count("\n")
    else:
        save(one, directory / "run")
        run = load_run(directory / "run")
        lines = run.skipped_lines
        assert summarize(run).requested == one.requested
    assert lines == 0
