"""Scans against a store in memory: each request, each byte, and each byte that is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from serverless_bench.base.errors import ServerFault
from serverless_bench.clients.base import Exchange, Sink, Source
from serverless_bench.driver.plan import ledger
from serverless_bench.features.parquet.layout import chosen, joined, layout_of
from serverless_bench.features.parquet.load import ParquetLoad
from serverless_bench.features.parquet.workload import WORKLOAD
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Transfer, Verify
from serverless_bench.job.workload import Load
from serverless_bench.rundir.record import InvocationRecord, OperationRecord
from serverless_bench.worker import runner
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.data.runs import TARGET
from tests.tables import each_row
from tests.unit.flaky import FlakyClient

LOAD = ParquetLoad(
    row_groups=4, columns=8, column_fraction=0.5, coalesce_gap=1000, footer_guess=1500
)
SIZE = 1 << 18


class Store(FlakyClient):
    """Notes the ranges of gets; what it keeps of a put may differ from what came."""

    def __init__(self, spoil: Callable[[bytearray], object] = bytes, **script: object) -> None:
        super().__init__(script)  # type: ignore[arg-type]
        self.spoil = spoil
        self.ranges: list[tuple[str, int, int | None]] = []

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        super().put(key, source, exchange)
        data = bytearray(self.objects[key])
        self.spoil(data)
        self.objects[key] = bytes(data)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        self.ranges.append((key, offset, length))
        super().get(key, sink, exchange, offset=offset, length=length)


def job(load: Load = LOAD, **more: object) -> JobSpec:
    values = {"transfer": Transfer(retries=1), "objects": 2, "size": SIZE, **more}
    return JobSpec(workload="parquet", target=TARGET, number=1, load=load, **values)  # type: ignore[arg-type]


def run(of: JobSpec, client: Store) -> InvocationRecord:
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: client)
        (invocation,) = invocation_specs(of, run_id="r", created_ns=1 << 62)
        record = run_invocation(invocation)
        forget_clients()
    return record


def scans_of(record: InvocationRecord) -> Sequence[OperationRecord]:
    return [op for op in record.operations if op.kind is OperationKind.SCAN]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_scan_makes_the_requests_that_the_workload_declares(threads: int) -> None:
    of, client = job(replace(LOAD, threads=threads), read_times=2), Store()
    record = run(of, client)
    assert record.error is None
    scan, layout = WORKLOAD.scan(of), layout_of(LOAD, SIZE)
    assert scan is not None
    ranges = joined(chosen(layout.row_groups, 0.5), 1000, 1 << 25)
    for key in ledger(of, invocation_specs(of, run_id="r", created_ns=1 << 62)):
        asked = [(offset, length or 0) for name, offset, length in client.ranges if name == key]
        footer = [(SIZE - 1500, 1500)]
        if len(layout.tail) > 1500:
            footer.append((SIZE - len(layout.tail), len(layout.tail[:-8])))
        assert sorted(asked) == sorted((footer + [tuple(span) for span in ranges]) * 2)
        assert len(asked) == 2 * scan.requests
        assert scan.footer_requests == len(footer)
        assert sum(length for _, length in asked) == 2 * scan.bytes
    measured = [op for op in record.operations if not op.warmup]
    assert [op.kind for op in measured] == [OperationKind.SCAN] * 4
    for op in measured:
        assert (op.bytes, op.verified_bytes, op.error) == (scan.bytes, scan.bytes, None)
        assert (op.size, op.bad_bytes) == (SIZE, 0)


def test_what_is_written_before_is_no_result() -> None:
    record = run(job(), Store())
    assert [(op.kind, op.warmup) for op in record.operations if op.warmup] == [
        (OperationKind.PUT, True)
    ] * 2


@each_row("guess", [8, 100, 1500, SIZE, 2 * SIZE])
def test_a_guess_may_be_too_small_or_the_whole_file(guess: int) -> None:
    of = job(replace(LOAD, footer_guess=guess))
    record, scan = run(of, Store()), WORKLOAD.scan(of)
    assert scan is not None
    assert {op.bytes for op in record.operations if not op.warmup} == {scan.bytes}
    assert scan.footer_requests == (2 if guess < len(layout_of(LOAD, SIZE).tail) else 1)


def test_ranges_are_read_side_by_side_and_none_is_longer_than_a_part() -> None:
    of = job(transfer=Transfer(connections=4, part_size=5 << 20), size=64 << 20, objects=1)
    client = Store()
    assert run(of, client).error is None
    assert max(length or 0 for *_, length in client.ranges[1:]) <= 5 << 20
    assert len(client.ranges) > 8


def flip(at: int) -> Callable[[bytearray], object]:
    def spoil(data: bytearray) -> None:
        data[at] ^= 4

    return spoil


LAYOUT = layout_of(LOAD, SIZE)
A_CHUNK = chosen(LAYOUT.row_groups, 0.5)[3]


@pytest.mark.parametrize(
    "at",
    [A_CHUNK.offset, A_CHUNK.offset + 27, A_CHUNK.offset + 500, A_CHUNK.end - 1],
)
def test_a_flipped_byte_in_a_chunk_is_found(at: int) -> None:
    record = run(job(), Store(flip(at)))
    found = scans_of(record)
    assert [(op.error, op.bad_bytes) for op in found] == [("corrupt", 1)] * 2
    assert {bad.offset for bad in record.bad_ranges} == {at}


@pytest.mark.parametrize("at", [SIZE - 1, SIZE - 5, SIZE - 9, SIZE - len(LAYOUT.tail)])
def test_a_flipped_byte_in_a_footer_is_found(at: int) -> None:
    record = run(job(replace(LOAD, footer_guess=4096)), Store(flip(at)))
    found = scans_of(record)
    assert [(op.error, op.bad_bytes) for op in found] == [("corrupt", 1)] * 2
    assert {bad.offset for bad in record.bad_ranges} == {at}


def test_a_flipped_byte_that_is_not_read_is_not_found() -> None:
    unread = next(c for c in LAYOUT.row_groups[0] if c not in chosen(LAYOUT.row_groups, 0.5))
    record = run(job(replace(LOAD, coalesce_gap=0)), Store(flip(unread.offset + 1)))
    assert {op.error for op in record.operations} == {None}


@pytest.mark.parametrize("at", [SIZE - 1, SIZE - 5, SIZE - 6, SIZE - len(LAYOUT.tail)])
def test_a_footer_that_is_not_compared_must_still_be_one(at: int) -> None:
    transfer = Transfer(verify=Verify.NONE, retries=0)
    record = run(job(transfer=transfer), Store(flip(at)))
    found = {op.error for op in scans_of(record)}
    assert found == {"bad_response"}


def test_a_file_that_is_cut_short_is_found() -> None:
    record = run(job(), Store(lambda data: data.__delitem__(slice(-100, None))))
    found = scans_of(record)
    assert [op.error for op in found] == ["corrupt"] * 2
    assert all(op.bad_bytes >= 100 for op in found)


def test_a_request_that_fails_is_made_again_and_counted() -> None:
    of = job(objects=1)
    client = Store(get=[None, ServerFault("later", status=500)])
    record, scan = run(of, client), WORKLOAD.scan(of)
    assert record.error is None
    assert scan is not None
    gets = [attempt for attempt in record.attempts if attempt.request == "get"]
    assert [attempt.error for attempt in gets].count(ServerFault.code) == 1
    assert len(gets) == scan.requests + 1
    assert record.operations[-1].bytes == scan.bytes
