"""Reads in ranges: surplus bytes, missing bytes, and wrong ranges."""

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.base.errors import BadRequest
from serverless_bench.base.units import MIB
from serverless_bench.clients.base import Exchange, Sink
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Transfer, Verify
from serverless_bench.payload import verify as verify_module
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.verify import Coverage, RangeSink
from serverless_bench.rundir.record import FoundBytes
from serverless_bench.worker.in_memory import MemorySink
from serverless_bench.worker.operation import MeasuredOperation, measure
from serverless_bench.worker.operation_context import InvocationContext, OperationContext
from serverless_bench.worker.retry import Retrier
from serverless_bench.worker.transfer import _KeepingSink
from tests.tables import each_row
from tests.unit.flaky import FlakyClient
from tests.unit.meters import patient_meter

SIZE = 5 * MIB // 2
KEY = f"{'0' * 32}.{SIZE}"
EVERY = pytest.mark.parametrize("verify", list(Verify))


def content(size: int = SIZE) -> bytes:
    data = bytearray(size)
    Keystream(KEY).readinto_at(0, data)
    return bytes(data)


@dataclass
class Ranging(FlakyClient):
    """Answers ranges as S3 does, of an object that may have any bytes."""

    body: bytes
    tells: bool = True
    """Whether it passes on the range of the answer."""
    shift: int = 0
    """Distance of the range that it sends from the requested one."""
    more: int = 0
    """Additional length of the range."""
    sent: list[tuple[int, int | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        self.sent.append((offset, length))
        total = len(self.body)
        offset += self.shift
        if length is not None and offset >= total:
            raise BadRequest("InvalidRange", status=416)
        data = self.body[offset : None if length is None else offset + length + self.more]
        header = f"bytes {offset}-{offset + len(data) - 1}/{total}"
        asked = self.tells and length is not None
        exchange.answered(206, {"content-range": header} if asked else {})
        exchange.first_byte()
        exchange.moved(len(data))
        sink.write_at(0, memoryview(data))


def read(
    client: FlakyClient,
    *,
    verify: Verify = Verify.FULL,
    part_size: int | None = MIB,
    min_split_size: int | None = None,
    span: tuple[int, int] | None = None,
    connections: int = 1,
    head_bytes: int | None = None,
) -> MeasuredOperation:
    """Read the object, or the range of it that begins at ``span[0]``."""
    transfer = Transfer(
        part_size=part_size,
        min_split_size=min_split_size,
        verify=verify,
        retries=0,
        connections=connections,
    )
    retrier = Retrier(client, 0, monotonic_ns() + 10**13, random.Random(1))
    operation = OperationSpec(
        kind=OperationKind.GET if span is None else OperationKind.GET_RANGE,
        key=KEY,
        size=SIZE if head_bytes is None else None,
        offset=span[0] if span else 0,
        length=span[1] if span else None,
    )
    known = InvocationContext(sizes={} if head_bytes is None else {KEY: head_bytes})
    context = OperationContext(operation, transfer, retrier, known)
    return measure(context, EpochClock())[0]


def found(done: MeasuredOperation) -> list[tuple[FoundBytes, int, int]]:
    return [(bad.found, bad.offset, bad.length) for bad in done.bad_ranges]


@pytest.mark.parametrize("connections", [1, 3])
def test_right_ranges_are_right(connections: int) -> None:
    done = read(Ranging(content()), connections=connections)
    assert (done.operation.error, done.operation.verified_bytes) == (None, SIZE)
    assert sorted(attempt.part for attempt in done.attempts) == [1, 2, 3]


@each_row(
    ("options", "sent"),
    [
        ({"part_size": None}, [(0, None)]),
        ({"part_size": None, "head_bytes": SIZE}, [(0, None)]),
        ({"part_size": None, "span": (7, 9)}, [(7, 9)]),
        ({"part_size": 2 * MIB}, [(0, 2 * MIB), (2 * MIB, SIZE - 2 * MIB)]),
        ({"min_split_size": SIZE}, [(0, MIB), (MIB, MIB), (2 * MIB, SIZE - 2 * MIB)]),
        ({"min_split_size": SIZE + 1}, [(0, None)]),
    ],
)
def test_requested_ranges_cover_the_object(
    options: dict[str, Any], sent: list[tuple[int, int | None]]
) -> None:
    client = Ranging(content())
    done = read(client, **options)
    assert (done.operation.error, client.sent) == (None, sent)
    several = range(1, len(sent) + 1) if len(sent) > 1 else [0]
    assert [attempt.part for attempt in done.attempts] == list(several)


def test_a_sample_is_by_megabyte_of_the_object_in_ranges_too() -> None:
    """Of two and a half, the first and the last are compared, the second is not."""
    done = read(Ranging(content()), verify=Verify.SAMPLE)
    assert done.operation.verified_bytes == SIZE - MIB


def test_the_time_for_comparing_is_that_of_all_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = itertools.count()
    monkeypatch.setattr(verify_module, "monotonic_ns", lambda: next(instants))
    assert read(Ranging(content())).operation.payload_ns == 3
    # There is no keystream to compare a foreign object with.
    assert read(Ranging(content()), head_bytes=SIZE).operation.payload_ns == 0


@EVERY
def test_a_surplus_is_found_in_ranges(verify: Verify) -> None:
    done = read(Ranging(content() + bytes(5000)), verify=verify)
    assert (done.operation.error, done.operation.bad_bytes) == ("corrupt", 5000)
    assert found(done) == [(FoundBytes.EXTRA, SIZE, 5000)]


@EVERY
def test_a_surplus_is_found_by_readers_of_a_share(verify: Verify) -> None:
    """All functions that see it report it; it counts once, at the end of the object."""
    counted = 0
    for first, last in ((0, MIB), (MIB, 2 * MIB), (2 * MIB, SIZE)):
        client = Ranging(content() + bytes(7))
        done = read(client, verify=verify, part_size=None, span=(first, last - first))
        assert done.operation.error == "corrupt"
        assert found(done) == [(FoundBytes.EXTRA, SIZE, 7)]
        counted += done.operation.bad_bytes
    assert counted == 7


@EVERY
@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("size", [0, 1, MIB, MIB + 1, 2 * MIB, SIZE - 1])
def test_a_lack_is_found_in_ranges(verify: Verify, size: int, tells: bool) -> None:  # noqa: FBT001
    done = read(Ranging(content(size), tells=tells), verify=verify)
    assert (done.operation.error, done.operation.bad_bytes) == ("corrupt", SIZE - size)
    assert found(done) == [(FoundBytes.MISSING, size, SIZE - size)]


def test_a_lack_behind_a_share_is_found() -> None:
    done = read(Ranging(content(SIZE - 9)), part_size=None, span=(100, 1000))
    assert (done.operation.error, done.operation.verified_bytes) == ("corrupt", 1000)
    assert found(done) == [(FoundBytes.MISSING, SIZE - 9, 9)]
    assert done.operation.bad_bytes == 0


@EVERY
@pytest.mark.parametrize("part_size", [None, MIB])
def test_whole_objects_are_as_long_as_their_keys_say(verify: Verify, part_size: int | None) -> None:
    short, long = Ranging(content(SIZE - 1), tells=False), Ranging(content() + b"x")
    assert read(short, verify=verify, part_size=part_size).operation.error == "corrupt"
    assert read(long, verify=verify, part_size=part_size).operation.error == "corrupt"


def test_an_object_of_others_is_as_long_as_the_store_reports() -> None:
    assert read(Ranging(bytes(SIZE)), head_bytes=SIZE).operation.error is None
    for size in (SIZE - 1, SIZE + 1):
        assert read(Ranging(bytes(size)), head_bytes=SIZE).operation.error == "corrupt"


@EVERY
@pytest.mark.parametrize("shift", [-1, 1, 16])
def test_another_range_is_no_response(verify: Verify, shift: int) -> None:
    client = Ranging(content(), shift=shift)
    done = read(client, verify=verify, part_size=None, span=(100, 1000))
    assert done.operation.error == "bad_response"
    (attempt,) = done.attempts
    assert attempt.status == 206
    assert attempt.detail == (
        f"requested bytes 100 to 1099, the response has {100 + shift} to {1099 + shift}"
    )


def test_a_longer_range_is_no_response() -> None:
    done = read(Ranging(content(), more=1), part_size=None, span=(100, 1000))
    assert done.operation.error == "bad_response"
    assert "the response has 100 to 1100" in str(done.attempts[0].detail)


@each_row(
    ("header", "span", "total"),
    [
        ("bytes 5-9/10", (5, 9), 10),
        ("bytes 0-0/*", (0, 0), None),
        ("bytes */77", None, 77),
        ("bytes 5-9", None, None),
        ("items 5-9/10", None, None),
        (None, None, None),
    ],
)
def test_the_range_of_a_response_is_checked(
    header: str | None, span: tuple[int, int] | None, total: int | None
) -> None:
    meter = patient_meter()
    meter.answered(206, {} if header is None else {"content-range": header})
    assert (meter.content_range, meter.total_bytes) == (span, total)


# Bytes that come twice, late or never


def fed(*blocks: tuple[int, int], verify: Verify = Verify.FULL) -> RangeSink:
    """Give blocks of the right bytes to a sink, each from where to where."""
    sink = RangeSink(Keystream(KEY), size=SIZE, offset=0, length=1000, verify=verify)
    whole = memoryview(content(2000))
    for begin, end in blocks:
        sink.write_at(begin, whole[begin:end])
    sink.finish()
    return sink


def test_the_first_half_twice_is_not_the_whole() -> None:
    sink = fed((0, 500), (0, 500))
    assert (sink.verified_bytes, sink.missing) == (500, 500)
    (bad,) = sink.bad.listed
    assert (bad.found, bad.offset, bad.length) == (FoundBytes.MISSING, 500, 500)


@example([(1001, 0)], Verify.FULL)
@given(
    st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 400)), max_size=12),
    st.sampled_from([Verify.FULL, Verify.NONE]),
)
def test_every_byte_that_never_came_is_missing(
    blocks: list[tuple[int, int]], verify: Verify
) -> None:
    sink = fed(*((begin, begin + length) for begin, length in blocks), verify=verify)
    came = {at for begin, length in blocks for at in range(begin, begin + length)}
    missing = set(range(1000)) - came
    named = [bad for bad in sink.bad.listed if bad.found is FoundBytes.MISSING]
    assert sink.missing == sum(bad.bad_bytes for bad in named) == len(missing)
    # Fewer than sixteen bytes that came do not end a range.
    assert missing <= {at for bad in named for at in range(bad.offset, bad.offset + bad.length)}
    assert sink.verified_bytes == (0 if verify is Verify.NONE else 1000 - len(missing))
    surplus = [bad.length for bad in sink.bad.listed if bad.found is FoundBytes.EXTRA]
    end = max((at + 1 for at in came), default=0)  # an empty block is nowhere
    assert surplus == ([end - 1000] if end > 1000 else [])


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=30))
def test_coverage_is_a_set_of_bytes(spans: list[tuple[int, int]]) -> None:
    coverage, known = Coverage(), set[int]()
    for begin, length in spans:
        new = set(range(begin, begin + length))
        assert coverage.add(begin, begin + length) == len(new - known)
        known |= new
    for length in (0, 1, 40, 100):
        gaps = list(coverage.gaps(length))
        assert all(begin < end for begin, end in gaps)
        assert {at for gap in gaps for at in range(*gap)} == set(range(length)) - known
        assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(gaps))


@pytest.mark.parametrize(("length", "kept"), [(5, b"abcde"), (None, b"abcdefgh"), (0, b"")])
def test_bytes_beyond_an_object_are_not_kept(length: int | None, kept: bytes) -> None:
    whole, mine = MemorySink(), MemorySink()
    sink = _KeepingSink(whole, mine, 0, length)
    for offset, piece in ((0, b"abcd"), (4, b"ef"), (6, b"gh")):
        sink.write_at(offset, memoryview(piece))
    assert (bytes(whole.data), bytes(mine.data)) == (b"abcdefgh", kept)
