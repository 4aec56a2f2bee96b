import errno
import io
import json
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import BinaryIO, cast, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.base.errors import ArchiveError
from serverless_bench.job.keys import hash_key
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.received import record_of
from serverless_bench.rundir.record import (
    TABLES,
    Attempt,
    BadRange,
    Dropped,
    FoundBytes,
    InvocationRecord,
    Lost,
    OperationRecord,
    Outcome,
    Step,
    Usage,
)
from serverless_bench.rundir.rows import Access, Act, Ending
from serverless_bench.rundir.run import load_run
from serverless_bench.rundir.tables import ABSENT, Table
from tests.data.runs import S, attempt, header, job, lost, operation, outcome, record, saved
from tests.tables import each_row

VALUES: dict[object, st.SearchStrategy[object]] = {
    int: st.integers(0, 2**53),
    float: st.floats(0, 1e9),
    str: st.text(max_size=20),
    bool: st.booleans(),
    type(None): st.none(),
    OperationKind: st.sampled_from(OperationKind),
    FoundBytes: st.sampled_from(FoundBytes),
    Act: st.sampled_from(Act),
    Ending: st.sampled_from(Ending),
}


def rows(row_type: type, **fixed: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Return rows with any values that their types allow."""
    drawn = {}
    for name, hint in get_type_hints(row_type).items():
        choices = get_args(hint) or (hint,)
        drawn[name] = st.one_of(*(VALUES[choice] for choice in choices if choice in VALUES))
    return st.builds(row_type, **{**drawn, **fixed})


@st.composite
def records(draw: st.DrawFn, index: int) -> InvocationRecord:
    size = draw(st.integers(0, 3))
    parts: dict[str, tuple[object, ...]] = {
        "operations": tuple(
            draw(rows(OperationRecord, index=st.just(number))) for number in range(size)
        )
    }
    tables = {
        "attempts": Attempt,
        "steps": Step,
        "bad_ranges": BadRange,
        "usages": Usage,
        "accesses": Access,
    }
    for name, row_type in tables.items():
        places = [
            draw(st.integers(0, size - 1)) for _ in range(draw(st.integers(0, 3)) if size else 0)
        ]
        parts[name] = tuple(draw(rows(row_type, operation=st.just(place))) for place in places)
    due = st.lists(rows(Dropped, count=st.integers(1, 1000)), max_size=2)
    parts["dropped"] = tuple(draw(due))
    fixed = {name: st.just(value) for name, value in parts.items()}
    return cast("InvocationRecord", draw(rows(InvocationRecord, index=st.just(index), **fixed)))


@given(records(0))
def test_a_record_survives_json(one: InvocationRecord) -> None:
    there = json.loads(json.dumps(one.to_json()))
    assert record_of(there) == one


@given(rows(Lost))
def test_a_loss_survives_json(one: Lost) -> None:
    original = Outcome(submitted_ns=1, collected_ns=2, result=one)
    there = json.loads(json.dumps(original.to_json()))
    assert there == {"submitted_ns": 1, "collected_ns": 2, "refusals": 0, "lost": asdict(one)}


@settings(max_examples=40)
@given(st.data())
def test_every_row_is_read_as_columns(data: st.DataObject) -> None:
    every = [data.draw(records(index)) for index in range(data.draw(st.integers(1, 3)))]
    outcomes = [Outcome(submitted_ns=1, collected_ns=2, result=one) for one in every]
    with tempfile.TemporaryDirectory() as scratch:
        run = saved(Path(scratch) / "run", outcomes)
    for function, one in enumerate(every):
        for name in TABLES:
            table: Table = getattr(run, name)
            rows = np.flatnonzero(table["function"] == function)
            assert len(rows) == len(getattr(one, name))
            for row, expected in zip(rows, getattr(one, name), strict=True):
                for field in expected.__dataclass_fields__:
                    value = getattr(expected, field)
                    assert table[field][row] == (
                        ABSENT if value is None and table[field].dtype != object else value
                    )


def test_the_header_is_there_before_the_first_record(tmp_path: Path) -> None:
    with Archive(tmp_path / "run", header=header(job(number=3)), ledger=["a", "b"]):
        run = load_run(tmp_path / "run")
        assert not run.ended
        assert run.ledger() == ["a", "b"]
        assert summarize(run).lost == 3
    assert load_run(tmp_path / "run").ended


def test_keys_of_written_objects_are_kept(tmp_path: Path) -> None:
    good, bad = operation(0), operation(1, error="throttled")
    run = saved(tmp_path / "run", [outcome(record(0, [good, bad]))])
    assert run.keys() == [good.key]


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    saved(tmp_path / "run", [outcome(record(i, [operation()])) for i in range(3)])
    records_file = tmp_path / "run" / "records.jsonl"
    lines = records_file.read_bytes().splitlines(keepends=True)
    records_file.write_bytes(b"".join(lines[:2]) + lines[2][:-50])
    run = load_run(tmp_path / "run")
    assert run.skipped_lines == 1
    assert list(run.functions["status"]) == ["ok", "ok", "lost"]


@given(st.integers(0, 10**9), st.integers(0, 255))
def test_no_damage_to_a_line_breaks_the_report(at: int, byte: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        saved(path, [outcome(record(i, [operation(), operation(1)])) for i in range(2)])
        data = bytearray((path / "records.jsonl").read_bytes())
        data[at % len(data)] = byte
        (path / "records.jsonl").write_bytes(data)
        summary = summarize(load_run(path))
    assert summary.requested == summary.ok + summary.failed + summary.lost == 2


def test_records_of_unequal_columns_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "run", [outcome(record(0, [operation()]))])
    records_file = tmp_path / "run" / "records.jsonl"
    line = json.loads(records_file.read_bytes().splitlines()[0])
    line["record"]["steps"]["operation"] = [7]
    records_file.write_text(json.dumps(line) + "\n")
    assert load_run(tmp_path / "run").skipped_lines == 1


def test_a_record_for_no_invocation_of_the_run_is_refused(tmp_path: Path) -> None:
    outcomes = [outcome(record(0, [])), outcome(record(5, []))]
    assert saved(tmp_path / "run", outcomes, of=job(number=1)).skipped_lines == 1


def test_a_late_record_outweighs_a_loss(tmp_path: Path) -> None:
    outcomes = [outcome(lost(0)), outcome(record(0, [operation()]))]
    run = saved(tmp_path / "run", outcomes, of=job(number=1))
    assert list(run.functions["status"]) == ["superseded", "ok"]


def test_the_first_good_record_counts_and_the_others_are_duplicates(tmp_path: Path) -> None:
    outcomes = [
        outcome(record(0, [], error="bad")),
        outcome(record(0, [operation()])),
        outcome(record(0, [operation()])),
    ]
    run = saved(tmp_path / "run", outcomes, of=job(number=1))
    assert list(run.functions["status"]) == ["duplicate", "ok", "duplicate"]


def test_a_bad_range_names_the_object_of_its_bytes(tmp_path: Path) -> None:
    bad = BadRange(
        operation=0,
        key="mine",
        offset=0,
        length=50,
        bad_bytes=50,
        found=FoundBytes.OTHER_OBJECT,
        found_key_hash=f"{hash_key('yours'):016x}",
        found_offset=0,
    )
    stranger = BadRange(
        operation=0,
        key="mine",
        offset=60,
        length=50,
        bad_bytes=50,
        found=FoundBytes.OTHER_OBJECT,
        found_key_hash="0000000000000000",
    )
    of = job(number=1, workload="read")
    one = outcome(record(0, [operation(kind=OperationKind.GET)], bad_ranges=[bad, stranger]))
    run = saved(tmp_path / "run", [one], of=of, keys=["mine", "yours"])
    assert list(run.bad_ranges["found_key"]) == ["yours", None]


def test_detail_can_be_left_out(tmp_path: Path) -> None:
    saved(tmp_path / "run", [outcome(record(0, [operation()], attempts=[attempt()]))])
    assert "key" in load_run(tmp_path / "run").operations
    assert "key" not in load_run(tmp_path / "run", detail=False).operations


def test_a_run_directory_is_never_used_twice(tmp_path: Path) -> None:
    saved(tmp_path / "run", [])
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(ArchiveError, match="already holds a run"):
        Archive(tmp_path / "run", header=header(job(number=1)), ledger=["k"], keys=["k"])
    # Above all its ledger, the only list of the written objects.
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_newer_schema_is_refused_and_says_so(tmp_path: Path) -> None:
    saved(tmp_path / "run", [])
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    with pytest.raises(ArchiveError, match="newer sbench"):
        load_run(tmp_path / "run")


@each_row("schema", [0, -1, "1", None, True, 1.0])
def test_a_schema_that_never_was_is_refused_and_says_so(tmp_path: Path, schema: object) -> None:
    path = saved(tmp_path / "run", []).path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": schema}))
    with pytest.raises(ArchiveError, match=f"damaged: unknown schema {schema!r}"):
        load_run(path.parent)


@each_row("text", ["", "[]", "{}", '{"schema": 1}', '{"schema": "1"}', "no json"])
def test_anything_else_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ArchiveError):
        load_run(tmp_path)


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="not a run directory"):
        load_run(tmp_path / "nothing")


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """Make writes beyond ``size`` bytes fail with EFBIG, in the middle of a line if need be."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_no_record_of_this_process(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with Archive(path, header=header(job(number=5)), ledger=[]) as archive:
        archive.append(outcome(record(0, [operation()])))
        room = (path / "records.jsonl").stat().st_size * 5 // 2
        with files_no_longer_than(room):
            for index in range(1, 5):
                archive.append(outcome(record(index, [operation()])))
    assert archive.failure is not None
    assert len(archive._unsaved) == 4  # three records, and the line for the end of the run
    assert archive.shortfall == f"the disk is full: 3 records are not saved in {path}"
    assert list(archive.load().functions["status"]) == ["ok"] * 5
    on_disk = load_run(path)
    assert list(on_disk.functions["status"]) == ["ok"] * 2 + ["lost"] * 3
    assert on_disk.skipped_lines == 0


def test_a_disk_that_fails_costs_no_record_either(tmp_path: Path) -> None:
    class Failing(io.FileIO):
        def write(self, _: object) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "run"
    with Archive(path, header=header(job(number=1)), ledger=[]) as archive:
        archive._records.close()
        archive._records = cast("BinaryIO", Failing(path / "records.jsonl", "ab"))
        archive.append(outcome(record(0, [operation()])))
    archive._records.close()
    message = f"the disk fails (Input/output error): 1 records are not saved in {path}"
    assert archive.shortfall == message
    assert list(archive.load().functions["status"]) == ["ok"]


@pytest.mark.parametrize("room", [0, 20, 100])
def test_a_run_that_does_not_fit_on_the_disk_is_removed(tmp_path: Path, room: int) -> None:
    path = tmp_path / "run"
    about, ledger, keys = header(job(number=5)), ["k" * 19], ["k" * 49]
    with files_no_longer_than(room), pytest.raises(ArchiveError, match="File too large"):
        Archive(path, header=about, ledger=ledger, keys=keys)
    assert list(path.iterdir()) == []
    with Archive(path, header=about, ledger=ledger, keys=keys) as archive:
        archive.append(outcome(record(0, [operation()])))
    assert load_run(path).ledger() == ledger


@pytest.mark.parametrize("room", [10, 20])
def test_a_wave_that_cannot_be_noted_is_refused(tmp_path: Path, room: int) -> None:
    """Either its keys do not fit, or they do and the line that refers to them does not."""
    path = tmp_path / "run"
    about = header(job(number=1))
    with Archive(path, header=about, ledger=["first"]) as archive, files_no_longer_than(room):
        with pytest.raises(ArchiveError, match="cannot write the ledger"):
            archive.begin_wave(1, 1, ["second"], 1)
        assert len(archive._unsaved) == (room == 20)
    assert load_run(path).ledger()[:1] == ["first"]


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match="cannot write the run directory"):
        Archive(tmp_path / "file" / "run", header=header(job(number=1)), ledger=[])


@each_row(
    "field",
    [
        *("refusals", "record.launch", "record.dropped", "record.barrier_puts"),
        *("record.operations.warmup", "record.attempts.date_s"),
    ],
)
def test_a_record_that_lacks_a_field_is_skipped_and_says_so(tmp_path: Path, field: str) -> None:
    path = saved(tmp_path / "run", [outcome(record(0, [operation()]))]).path
    first, *rest = (path / "records.jsonl").read_text().splitlines()
    line = json.loads(first)
    *parents, name = field.split(".")
    holder = line
    for parent in parents:
        holder = holder[parent]
    del holder[name]
    (path / "records.jsonl").write_text("\n".join([json.dumps(line), *rest, ""]))
    run = load_run(path)
    assert run.skipped_lines == 1
    assert name in run.problems[0]


@each_row("cut", [0, 1, 30, 41, 60])
def test_keys_that_a_killed_driver_did_not_add_are_added(tmp_path: Path, cut: int) -> None:
    """It died between a record and its keys, or in the middle of a key."""
    path = tmp_path / "run"
    outcomes = [
        outcome(record(n, [operation(0, size=n + 1), operation(1, size=n + 1)])) for n in range(3)
    ]
    keys = saved(path, outcomes).keys()
    whole = (path / "keys.txt").read_bytes()
    # A killed driver does not finish its last line; an invalid line may be anywhere.
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (path / "records.jsonl").write_bytes(b"".join([*lines[:1], b"7\n", *lines[1:3]]))
    (path / "keys.txt").write_bytes(whole[: len(whole) - cut])
    for _ in range(2):
        with Archive(path):
            pass
        assert load_run(path).keys() == keys


def test_a_key_that_cannot_be_printed_is_a_line_of_no_file(tmp_path: Path) -> None:
    two_lines = replace(operation(0), key="sbench/a\nsbench/b")
    path = saved(tmp_path / "run", [outcome(record(0, [two_lines, operation(1)]))]).path
    assert load_run(path).keys() == [operation(1).key]
    with Archive(path):
        pass
    assert load_run(path).keys() == [operation(1).key]


@each_row(
    ("line", "problem"),
    [
        (b"a\x1b[2Jb", "line 2 has characters that cannot be printed: 'a\\\\x1b"),
        (b"\xff", "line 2 is not UTF-8"),
        (b"\0", "line 2 is not text"),
        (b"x" * 5000, "line 2 has 5000 characters; a key has at most 1024"),
    ],
)
@each_row("name", ["keys.txt", "ledger.txt"])
def test_a_line_that_is_no_key_is_named(
    tmp_path: Path, name: str, line: bytes, problem: str
) -> None:
    run = saved(tmp_path / "run", [])
    (run.path / name).write_bytes(b"a\n" + line + b"\nb\n")
    with pytest.raises(ArchiveError, match=f"{name}, {problem.replace('[', '.')}"):
        run.keys() if name == "keys.txt" else run.ledger()


def test_a_key_cut_inside_a_letter_is_ignored(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [])
    (run.path / "keys.txt").write_bytes("größe\ngr".encode() + "ö".encode()[:1])
    assert run.keys() == ["größe"]


@each_row(
    ("where", "value", "problem"),
    [
        (("job", "number"), 10**12, "`job.number` must be at most 500,000"),
        (("job", "target", "prefix"), "a\nb", "`job.target.prefix` has characters"),
        (("job", "target", "bucket"), "a\x1b[2J", "`job.target.bucket` has characters"),
        (("job", "name"), "\r", "`job.name` has characters"),
        (("job", "target"), 5, "`job.target` must be a table"),
        (("job", "load"), {"threads": "4"}, "`job.load.threads` must be a whole number"),
        (("job", "load"), {"sizes": "listing:/etc/passwd"}, "'listing:/etc/passwd' is not a dist"),
        (("job", "endpoints"), [5], "`job.endpoints` must be a list of text, got"),
        (("job", "target", "news"), 5, "`job.target.news` is unknown"),
        (("job", "scheduler"), "a\nb", "`job.scheduler` has characters"),
        (("job", "news"), 5, "`news` is no option of a job"),
        (("job", "barrier"), 2.0, "`job.barrier` must be above 0 and at most 1"),
        (("created_ns",), -1, "`created_ns`: Expected `int` >= 0"),
        (("run_id",), "a\nb", "`run_id` has characters"),
        (("provenance", "client"), {"shows": "all"}, "`provenance.client.shows`: Expected"),
        (("probe",), {"functions": [{"billed_ms": "1"}]}, r"`probe.functions\[0\].billed_ms`"),
    ],
)
def test_invalid_values_of_a_header_are_named(
    tmp_path: Path, where: tuple[str, ...], value: object, problem: str
) -> None:
    path = saved(tmp_path / "run", []).path / "run.json"
    document = json.loads(path.read_bytes())
    holder = document
    for name in where[:-1]:
        holder = holder[name]
    holder[where[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ArchiveError, match=f"run.json: {problem}") as caught:
        load_run(path.parent)
    assert str(caught.value).isprintable()


def test_keys_that_a_run_was_given_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "run"
    get = operation(0, kind=OperationKind.GET)
    saved(path, [outcome(record(0, [get]))], of=job(number=1, workload="read"), keys=["a"])
    with Archive(path):
        pass
    assert load_run(path).keys() == ["a"]


def test_a_pause_begins_with_the_last_sign_of_the_driver(tmp_path: Path) -> None:
    """A driver that was killed in the middle of a batch had been at work since its last record."""
    first = outcome(record(0, [operation(end_ns=4 * S)]))
    records = saved(tmp_path / "run", [first], of=job(number=2)).path / "records.jsonl"
    (arrived, _) = records.read_text().splitlines()
    signs = ({"alive": {"alive_ns": 11 * S}}, {"resumed": {"resumed_ns": 15 * S}})
    records.write_text("\n".join([arrived, *map(json.dumps, signs), ""]))
    assert load_run(tmp_path / "run").downtimes == ((11 * S, 15 * S),)


def test_a_driver_at_work_gives_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serverless_bench.rundir.archive._BEAT_S", 1e-3)
    of = header(job(number=1))
    with Archive(tmp_path / "run", header=of) as archive, archive.beating(lambda: 7):
        while b"alive" not in (records := (tmp_path / "run" / "records.jsonl").read_bytes()):
            pass
    sign = json.loads(records.splitlines()[0])["alive"]
    assert sign["alive_ns"] > 0
    assert sign["started"] == 7
    assert load_run(tmp_path / "run").skipped_lines == 0
