"""Logs to schedules, and schedules to operations: on known lines, and on logs drawn at random."""

import hashlib
import hmac
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import NotFound, ServerFault, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.plan import ledger
from serverless_bench.features.replay.lines import MAX_UPLOADS, LogReader
from serverless_bench.features.replay.load import ReplayLoad
from serverless_bench.features.replay.log import read_log
from serverless_bench.features.replay.schedule import MISSING, ReplaySchedule, deal, unpack
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Transfer
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.worker import runner
from serverless_bench.worker.invocation import forget_clients, run_invocation
from serverless_bench.worker.pacing import not_taken
from tests.data import oplogs
from tests.data.access_logs import line
from tests.data.runs import TARGET
from tests.tables import each_row
from tests.unit.flaky import FlakyClient

SECRET = b"a secret of the user"
AT = "06/Feb/2019:00:00:38 +0000"
FOLDER = f"{TARGET.prefix}r/replay/0/"


def schedule_of(
    text: str, *, secret: bytes | None = SECRET, max_gap: float | None = None, keep: bool = True
) -> tuple[ReplaySchedule, Sequence[str]]:
    return read_log(io.StringIO(text), secret=secret, max_gap=max_gap, keep=keep)


def shown(schedule: ReplaySchedule) -> list[tuple[str, int, int, int]]:
    """Return kind, object, and range of each operation."""
    return [(row.kind.value, row.object, row.offset, row.length) for row in schedule.rows]


def name(key: str) -> str:
    return hmac.digest(SECRET, key.encode(), hashlib.sha256)[:16].hex()


def test_lines_of_an_access_log() -> None:
    schedule, notes = schedule_of(
        "\n".join(
            [
                line(AT, "REST.GET.OBJECT", "a%20b", sent=9, size=9, query="?X-Amz-Signature=5ec"),
                line(AT, "REST.GET.OBJECT", "a%20b", status=206, sent=4, size=9),
                line(AT, "REST.GET.OBJECT", "a%20b", status=206, sent=4, size=9),
                line(AT, "REST.PUT.OBJECT", "../../etc/passwd", size=7),
                line(AT, "REST.HEAD.OBJECT", "../../etc/passwd", size=7),
                line(AT, "REST.POST.UPLOADS", "big"),
                line(AT, "REST.PUT.PART", "big", size=5 << 20),
                line(AT, "REST.PUT.PART", "big", size=3),
                line(AT, "REST.POST.UPLOAD", "big"),
                line(AT, "REST.COPY.OBJECT", "copy", size=9),
                line(AT, "REST.GET.BUCKET", "-", query="?prefix=a"),
                line(AT, "REST.DELETE.OBJECT", "a%20b", status=204),
                line(AT, "REST.HEAD.OBJECT", "a%20b", status=404),
                line(AT, "REST.PUT.OBJECT", "a%20b", size=0),
                line(AT, "REST.GET.ACL", "a%20b"),
                line(AT, "REST.GET.OBJECT", "a%20b", status=403),
                "no line of a log",
                "",
            ]
        ),
    )
    # The log does not say where a range begins.
    ranges = [row.offset for row in schedule.rows if row.kind is OperationKind.GET_RANGE]
    assert all(0 <= offset <= 9 - 4 for offset in ranges)
    rows = [schedule.rows[0], *(row._replace(offset=0) for row in schedule.rows[1:])]
    assert shown(schedule._replace(rows=rows)) == [
        ("get", 0, 0, 0),
        ("get_range", 0, 0, 4),
        ("get_range", 0, 0, 4),
        ("put", 1, 0, 0),
        ("head", 1, 0, 0),
        ("put", 2, 0, 0),
        ("copy", 3, 0, 0),
        ("list", -1, 0, 0),
        ("delete", 0, 0, 0),
        ("head", 0, 0, -1),
        ("put", 4, 0, 0),
    ]
    # Another object at a key has the next name; one that never exists has no size.
    first = int(name("a b"), 16)
    assert schedule.sizes == [9, 7, (5 << 20) + 3, 9, 1]
    assert schedule.names[0::4] == [first, first + 1]
    assert (schedule.prepared, schedule.made) == ([0], (2, 18))
    assert notes == [
        "not replayed: 1 REST.GET.ACL 200, 1 REST.GET.OBJECT 403, 1 lines that cannot be read"
    ]


def test_instants_spread_over_a_second_are_sorted_and_gaps_are_cut() -> None:
    times = ["06/Feb/2019:00:00:40 +0000", AT, AT, "06/Feb/2019:01:10:38 +0100"]
    lines = [line(at, "REST.HEAD.OBJECT", "k", size=1) for at in times]
    whole, notes = schedule_of("\n".join(lines))
    assert [row.due_us for row in whole.rows] == [0, 500_000, 2_000_000, 600_000_000]
    assert notes == []
    cut, _ = schedule_of("\n".join(lines), max_gap=1)
    assert [row.due_us for row in cut.rows] == [0, 500_000, 1_500_000, 2_500_000]
    assert cut.lasts_us == 2_500_000


def test_a_log_of_warp_and_a_table() -> None:
    begin = oplogs.BEGIN
    requests = [
        oplogs.Request(start_ns=begin + 5, end_ns=begin + 9, op="PUT", size=10),
        oplogs.Request(start_ns=begin + 7_000, end_ns=begin + 9_000, op="STAT", size=0),
        oplogs.Request(start_ns=begin + 9_000, end_ns=begin + 9_000, op="GET", size=10),
        oplogs.Request(start_ns=begin + 9_000, end_ns=begin + 9_000, op="GET", error="x: 404"),
        oplogs.Request(start_ns=begin + 9_000, end_ns=begin + 9_000, op="GET", error="503"),
    ]
    schedule, notes = schedule_of(oplogs.oplog(requests))
    assert [kind for kind, *_ in shown(schedule)] == ["put", "head", "get", "get"]
    assert [row.due_us for row in schedule.rows] == [0, 6, 8, 8]
    assert (schedule.sizes, schedule.rows[-1].length) == ([10], MISSING)
    assert notes == ["not replayed: 1 GET 503"]
    rows = "time,op,key,size,offset,length\n1.5,get_range,k,9,2,3\n2020-01-01 00:00:00,get,k,9,,\n"
    schedule, notes = schedule_of(rows + "1,get_range,k,9,8,3\n-1,get,k,9,,\n1,get,k\n")
    assert shown(schedule) == [("get_range", 0, 2, 3), ("get", 0, 0, 0)]
    assert notes == ["not replayed: 3 lines that cannot be read"]


def test_nothing_of_a_log_is_kept() -> None:
    text = line(AT, "REST.PUT.OBJECT", "patient/42", size=7, query="?X-Amz-Signature=5ec")
    for secret in (SECRET, None):
        schedule, _ = schedule_of(text, secret=secret)
        job = replay(schedule)
        kept = f"{schedule} {job} {[*ledger(job, invocations(job))]}"
        for word in ("patient", "42/", "5ec", "alice", "192.0.2.3", SECRET.decode()):
            assert word not in kept
    # Without a secret, equal logs have equal schedules: runs of a comparison do the same.
    assert schedule_of(text, secret=None)[0] == schedule
    assert schedule.names != schedule_of(text)[0].names


@each_row("text", ["", "\n\n", "words\n", "time,op\n1,get\n", "\0" * 70_000])
def test_no_log(text: str) -> None:
    with pytest.raises(UsageError, match="the log has no request to replay"):
        schedule_of(text)


def test_schedules_are_checked() -> None:
    schedule, _ = schedule_of(line(AT, "REST.PUT.OBJECT", "k", size=7))
    assert unpack(schedule.pack()) == schedule
    row = schedule.rows[0]
    wrong = (
        *(schedule._replace(names=[1 << 128]), schedule._replace(sizes=[])),
        *(schedule._replace(prepared=[1]), schedule._replace(prepared=[-2])),
        schedule._replace(rows=[row._replace(object=1)]),
    )
    for text in ("", "k", "eJw=", *(other.pack() for other in wrong)):
        with pytest.raises(UsageError, match="not the schedule of a replay"):
            unpack(text)


def replay(schedule: ReplaySchedule, *, number: int = 1, **load: object) -> JobSpec:
    return JobSpec(
        workload="replay",
        target=TARGET,
        transfer=Transfer(retries=0),
        number=number,
        load=ReplayLoad(log=schedule.pack(), **load),  # type: ignore[arg-type]
    )


def invocations(job: JobSpec) -> list[InvocationSpec]:
    return [*invocation_specs(job, run_id="r", created_ns=1 << 62)]


class Store(FlakyClient):
    """Says that objects are missing."""

    def get(self, key: str, *rest: object, **more: object) -> None:
        if key not in self.objects:
            raise NotFound("no such key", status=404)
        super().get(key, *rest, **more)  # type: ignore[arg-type]

    def head(self, key: str, exchange: object) -> int:
        if key not in self.objects:
            raise NotFound("no such key", status=404)
        return super().head(key, exchange)  # type: ignore[arg-type]


def run(invocation: InvocationSpec, client: FlakyClient) -> InvocationRecord:
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: client)
        record = run_invocation(invocation)
        forget_clients()
    return record


LINES = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from(["get", "put", "head", "delete", "copy", "get_range", "list"]),
        st.sampled_from(["a", "b", "c/../d", "e"]),
        st.sampled_from([40, 40, 70]),
        st.sampled_from(["200", "200", "404"]),
    ),
    min_size=1,
    max_size=40,
)


@given(lines=LINES, threads=st.integers(1, 3), number=st.integers(1, 3))
def test_any_log_can_be_replayed(
    lines: Sequence[tuple[int, str, str, int, str]],
    threads: int,
    number: int,
) -> None:
    rows = [f"0.{at:03},{op},{key},{size},3,17,{status}" for at, op, key, size, status in lines]
    text = "\n".join(["time,op,key,size,offset,length,status", *rows])
    if all(
        status == "404" and op in {"put", "delete", "copy", "list"} for _, op, *_, status in lines
    ):
        with pytest.raises(UsageError):
            schedule_of(text)
        return
    schedule, _ = schedule_of(text)
    plan, _ = schedule_of(text, keep=False)
    assert plan.totals == schedule.totals
    job = replay(schedule, number=number, threads=threads)
    records = []
    for invocation in invocations(job):
        client = Store()
        records.append(record := run(invocation, client))
        assert record.error is None, record.error
        listed = set(ledger(job, [invocation]))
        assert all(key.startswith(FOLDER) for key in listed)
        assert {op.key for op in record.operations if op.kind is not OperationKind.LIST} <= listed
        assert [op.error for op in record.operations if op.error] == []
        assert all(op.verified_bytes == op.bytes for op in record.operations if op.first_byte_ns)
    done = [op for record in records for op in record.operations]
    measured = Counter(op.kind.value for op in done if not op.warmup)
    assert measured == {kind: count for kind, count, _ in schedule.totals}
    prepared = [op for op in done if op.warmup]
    assert len(prepared) == schedule.made[0]
    assert sum(op.bytes for op in prepared) == schedule.made[1]


def test_a_failed_put_makes_no_read_wrong() -> None:
    rows = ["time,op,key,size", "1,put,k,9", "1,put,k,9", "1,get,k,9", "1,put,k,9", "1,get,k,9"]
    schedule, _ = schedule_of("\n".join(rows))
    (invocation,) = invocations(replay(schedule))
    record = run(invocation, Store({"put": [None, ServerFault("no", status=500)]}))
    assert [op.error for op in record.operations] == [None, "server_error", None, None, None]
    assert [op.verified_bytes for op in record.operations] == [0, 0, 0, 0, 9]
    assert [op.generation for op in record.operations] == [0, 1, 1, 2, 2]


def test_an_object_that_must_not_be_there_is_an_error() -> None:
    schedule, _ = schedule_of("time,op,key,size,status\n1,head,k,,404\n")
    (invocation,) = invocations(replay(schedule))
    client = Store()
    (key,) = ledger(replay(schedule), [invocation])
    client.objects[key] = b"?"
    (operation,) = run(invocation, client).operations
    assert operation.error == "bad_response"


def test_speed_and_what_a_replay_refuses() -> None:
    schedule, _ = schedule_of("time,op,key,size\n1,put,k,9\n1001,get,k,9\n")
    with pytest.raises(UsageError, match="lasts 1,000 s, functions stop after 900 s"):
        replay(schedule)
    job = replay(schedule, speed=4.0)
    (invocation,) = invocations(job)
    dues = [spec.due_ns for spec in job.declared.operations(invocation)]
    assert dues == [0, 250 * NS_PER_S]
    for name_of, value in (("duration", 3.0), ("warm_up", 1), ("objects", 2)):
        with pytest.raises(UsageError, match="does not apply to a replay"):
            replace(job, **{name_of: value})  # type: ignore[arg-type]


def test_parts_hold_every_operation_once() -> None:
    rows = [f"{n},{op},{n % 7},5" for n, op in enumerate(["get", "put", "list"] * 20)]
    schedule, _ = schedule_of("\n".join(["time,op,key,size", *rows]))
    parts = [unpack(text) for text in deal(schedule.pack(), 3)]
    names = [
        (row.due_us, row.kind, None if row.object < 0 else part.names[row.object])
        for part in parts
        for row in part.rows
    ]
    assert sorted(names, key=str) == sorted(
        (
            (row.due_us, row.kind, None if row.object < 0 else schedule.names[row.object])
            for row in schedule.rows
        ),
        key=str,
    )
    assert sum(len(part.prepared) for part in parts) == len(schedule.prepared)


def test_what_did_not_start_is_dropped() -> None:
    left = [
        OperationSpec(kind=OperationKind.GET, key="k", size=1, due_ns=due) for due in range(1000)
    ]
    rows = not_taken(left, 10, 500, 700)
    assert [row.first_ns for row in rows] == [*range(10, 500)]
    assert {(row.count, row.until_ns) for row in rows} == {(1, 700)}
    assert not_taken(left, 10, None, None) == []


def test_the_sample_of_a_plan_is_about_right() -> None:
    text = "\n".join(
        ["time,op,key,size", *(f"{n},get,{n * 7919 % 50_000},9" for n in range(50_000))]
    )
    plan, _ = schedule_of(text, keep=False)
    assert plan.made[0] == pytest.approx(50_000, rel=0.03)
    assert (plan.rows, plan.names) == ([], [])


def test_uploads_without_an_end_do_not_fill_the_memory() -> None:
    """The parts of the oldest uploads are forgotten, and this is said."""
    reader, more = LogReader(), 100
    whole = line(AT, "REST.PUT.OBJECT", "a", size=5000)
    lines = [line(AT, "REST.PUT.PART", f"k{n}", size=5 << 20) for n in range(MAX_UPLOADS + more)]
    assert [request.key for request in reader.requests([*lines, whole])] == ["a"]
    assert len(reader._uploads) == MAX_UPLOADS
    assert sum(reader.skipped.values()) == more


def test_what_is_not_replayed_is_said_in_few_words() -> None:
    head = "time,op,key,size,status\n0,put,a,5000,200\n"
    _, notes = schedule_of(head + "".join(f"0,get,a,5000,{n}{'4' * 20_000}\n" for n in range(4, 8)))
    assert len("".join(notes)) < 200
