"""The parts of the loopback store that need no network."""

import io
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.features.aws.token_bucket import TokenBucket
from serverless_bench.features.loopback.bodies import (
    KEPT_BYTES,
    KEPT_UNDECLARED_BYTES,
    Body,
    Inspector,
    UploadCheck,
)
from serverless_bench.features.loopback.faults import FaultKind, FaultLog, FaultPlan
from serverless_bench.features.loopback.objects import (
    ABSENT,
    ObjectTable,
    StoredObject,
    assemble,
    etag_of,
)
from serverless_bench.features.loopback.s3 import S3Error, parse_request
from serverless_bench.features.loopback.shaping import (
    QUANTUM_NS,
    NetworkBucket,
    Pace,
    Shape,
    Shaper,
    parse_latency,
)
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.target import MIN_PART_BYTES
from serverless_bench.payload.keystream import Keystream

KEY = f"sbench/{'ab' * 16}.200000"
WHOLE = bytearray(200_000)
Keystream(KEY).readinto_at(0, WHOLE)


def decisions(plan: FaultPlan, keys: Iterable[str]) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for key in keys:
        fault = plan.decide("get", key)
        found.append((key, fault.kind if fault else None))
    return found


RATES = {FaultKind.FLIP: 0.3, FaultKind.SLOWDOWN: 0.2}
KEYS = [str(number % 50) for number in range(200)]


class TestFaults:
    def test_faults_only_depend_on_the_request(self) -> None:
        here, there = (FaultPlan(5, RATES) for _ in range(2))
        assert decisions(here, KEYS) == decisions(there, KEYS)
        shuffled = sorted(KEYS)
        again = decisions(FaultPlan(5, RATES), shuffled)
        assert sorted(again, key=str) == sorted(decisions(FaultPlan(5, RATES), KEYS), key=str)
        assert decisions(FaultPlan(6, RATES), KEYS) != decisions(here, KEYS)

    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_they_come_at_their_rate(self, rate: float) -> None:
        plan = FaultPlan(1, {FaultKind.FLIP: rate})
        hits = sum(plan.decide("get", str(number)) is not None for number in range(4000))
        assert abs(hits / 4000 - rate) < 0.03

    def test_one_request_meets_one_fault_the_first_of_the_order(self) -> None:
        plan = FaultPlan(1, {FaultKind.FLIP: 1.0, FaultKind.ERROR: 1.0})
        fault = plan.decide("get", "k")
        assert fault is not None
        assert (fault.kind, fault.number) == (FaultKind.ERROR, 0)

    def test_a_fault_only_hits_suitable_requests(self) -> None:
        plan = FaultPlan(1, {FaultKind.FLIP: 1.0, FaultKind.RESET_PUT: 1.0})
        assert plan.decide("delete", "k") is None
        fault = plan.decide("upload_part", "k", "3")
        assert fault is not None
        assert fault.kind is FaultKind.RESET_PUT

    @given(st.integers(1, 40), st.integers(0, 10**6), st.integers(1, 10**6))
    def test_flips_are_in_different_bytes_of_the_range(
        self, count: int, first: int, size: int
    ) -> None:
        fault = FaultPlan(1, {FaultKind.FLIP: 1.0}).decide("get", "k")
        assert fault is not None
        places = fault.bits(count, first, first + size)
        assert len({offset for offset, _ in places}) == min(count, size)
        assert all(first <= offset < first + size and 0 <= bit < 8 for offset, bit in places)

    def test_a_cut_keeps_at_least_one_byte_back(self) -> None:
        fault = FaultPlan(1, {FaultKind.FLIP: 1.0}).decide("get", "k")
        assert fault is not None
        assert {fault.cut(3) for _ in range(100)} == {0, 1, 2}

    def test_a_log_that_cannot_be_written_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot write --log"):
            FaultLog(tmp_path / "no" / "such")


class TestShaping:
    def test_a_function_has_its_burst_and_then_its_rate(self) -> None:
        # 300 bytes at once, then 10 every 100 ms.
        bucket = NetworkBucket(300, 100, now_ns=0)
        assert bucket.wait_ns(300, 0) == 0
        now_ns = 0
        for _ in range(20):
            now_ns += bucket.wait_ns(10, now_ns)
        assert now_ns == 20 * QUANTUM_NS

    def test_half_of_a_burst_comes_back(self) -> None:
        bucket = NetworkBucket(300, 100, now_ns=0)
        assert bucket.wait_ns(300, 0) == 0
        later_ns = 1000 * NS_PER_S
        assert bucket.wait_ns(150, later_ns) == 0
        assert bucket.wait_ns(1, later_ns) > 0

    @given(st.lists(st.integers(1, 100_000), min_size=1, max_size=50))
    def test_a_function_is_never_faster_than_burst_and_rate(self, counts: list[int]) -> None:
        bucket, now_ns = NetworkBucket(50_000, 20_000, now_ns=0), 0
        for moved, count in enumerate(counts):
            now_ns += bucket.wait_ns(count, now_ns)
            allowed = 50_000 + 20_000 * now_ns / NS_PER_S
            assert sum(counts[: moved + 1]) <= allowed + 1e-3

    def test_a_connection_has_its_rate(self) -> None:
        pace, now_ns = Pace(1000), NS_PER_S
        for _ in range(10):
            now_ns += pace.wait_ns(100, now_ns)
        # The bucket may compensate for a late wake-up of 20 ms.
        assert 0.97 <= (now_ns - NS_PER_S) / NS_PER_S <= 1

    def test_a_prefix_has_its_requests_per_second(self) -> None:
        bucket = TokenBucket(100, 100, now_ns=0)
        assert sum(bucket.take(0) for _ in range(300)) == 100
        later = [bucket.take(ms * 1_000_000) for ms in range(1, 1001)]
        assert sum(later) in {99, 100}

    def test_prefixes_and_methods_have_buckets_of_their_own(self) -> None:
        shaper = Shaper(Shape(put_per_s=1, get_per_s=1))
        asked = [("a", True), ("a", False), ("b", True), ("a", True)]
        admitted = [shaper.admits(p, write=w, now_ns=0) for p, w in asked]
        assert admitted == [True, True, True, False]

    def test_both_directions_of_a_function_are_separate(self) -> None:
        shaper = Shaper(Shape(function_burst_bytes=10, function_bytes_per_s=1))
        up = shaper.function("f", upload=True, now_ns=0)
        down = shaper.function("f", upload=False, now_ns=0)
        assert up is not down
        assert up is shaper.function("f", upload=True, now_ns=0)
        assert Shaper(Shape()).function("f", upload=True, now_ns=0) is None

    def test_latencies_follow_the_distribution(self) -> None:
        draw = random.Random(1)
        assert parse_latency(None)(draw) == 0
        assert parse_latency("fixed:30ms")(draw) == 0.03
        some = [parse_latency("uniform:10ms,20ms")(draw) for _ in range(500)]
        assert 0.01 <= min(some) < 0.011
        assert 0.019 < max(some) <= 0.02
        many = sorted(parse_latency("lognormal:40ms,0.5")(draw) for _ in range(2001))
        assert 0.036 < many[1000] < 0.044

    def test_a_queue_serves_so_many_at_once_and_the_others_wait(self) -> None:
        shaper, draw, ms = Shaper(Shape(queue="2:fixed:10ms")), random.Random(1), 10**6
        waits = [shaper.queue_ns(draw, 5 * ms, 5 * ms) for _ in range(5)]
        assert waits == [10 * ms, 10 * ms, 20 * ms, 20 * ms, 30 * ms]
        # The time counts from the arrival of the request, and a time in the past means no wait.
        assert shaper.queue_ns(draw, 100 * ms, 104 * ms) == 6 * ms
        assert Shaper(Shape()).queue_ns(draw, 0, 0) == 0
        times = sorted(parse_latency("exponential:10ms")(draw) for _ in range(2001))
        assert 0.0063 < times[1000] < 0.0076

    @pytest.mark.parametrize("text", ["", "2", "0:fixed:1ms", "x:fixed:1ms", "10001:fixed:1ms"])
    def test_other_queues_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match=r"is not of the form N:DIST|is not a distribution"):
            Shape(queue=text)

    @pytest.mark.parametrize(
        "text", ["", "fixed", "fixed:a", "fixed:1ms,2", "normal:1", "fixed:-1"]
    )
    def test_other_latencies_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="not a distribution"):
            Shape(latency=text)

    def test_a_burst_without_a_rate_is_refused(self) -> None:
        with pytest.raises(UsageError, match="needs --function-rate"):
            Shape(function_burst_bytes=1)


def chunked(data: bytes, cuts: Sequence[int], end: bytes, extension: bytes = b"") -> bytes:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(edges)]
    framed = [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces]
    return b"".join(framed) + b"0" + extension + b"\r\n" + end


def source_of(wire: bytes) -> io.BufferedReader:
    raw: Any = io.BytesIO(wire)
    return io.BufferedReader(raw, 8192)


def read_all(wire: bytes, headers: dict[str, str], room: int) -> tuple[bytes, bytes]:
    """Return a body, and the remaining bytes of the connection."""
    source = source_of(wire)
    body, view, read = Body(source, headers), memoryview(bytearray(room)), b""
    while count := body.fill(view):
        read += view[:count]
    body.drain(view)
    return read, source.read()


AWS = {"content-encoding": "aws-chunked", "x-amz-content-sha256": "STREAMING-"}
TRAILER = b"x-amz-checksum-crc32:AAAAAA==\r\n\r\n"
CUTS = st.lists(st.integers(1, 3000), max_size=6)


class TestBodies:
    @given(st.binary(max_size=3000), st.integers(1, 4000))
    def test_a_body_of_known_length(self, data: bytes, room: int) -> None:
        headers = {"content-length": str(len(data))}
        assert read_all(data + b"next", headers, room) == (data, b"next")

    @given(st.binary(max_size=3000), CUTS, st.integers(1, 4000))
    def test_chunks_of_http(self, data: bytes, cuts: list[int], room: int) -> None:
        wire = chunked(data, cuts, b"\r\n") + b"next"
        assert read_all(wire, {"transfer-encoding": "chunked"}, room) == (data, b"next")

    @given(
        st.binary(max_size=3000), CUTS, st.sampled_from([TRAILER, b"\r\n"]), st.integers(1, 4000)
    )
    def test_chunks_of_aws(self, data: bytes, cuts: list[int], end: bytes, room: int) -> None:
        inner = chunked(data, cuts, end, b";chunk-signature=0a")
        headers = {**AWS, "content-length": str(len(inner))}
        assert read_all(inner + b"next", headers, room) == (data, b"next")

    @given(st.binary(max_size=3000), CUTS, CUTS, st.integers(1, 4000))
    def test_chunks_of_aws_in_chunks_of_http(
        self, data: bytes, cuts: list[int], outer: list[int], room: int
    ) -> None:
        inner = chunked(data, cuts, TRAILER)
        wire = chunked(inner, outer, b"\r\n") + b"next"
        headers = {**AWS, "transfer-encoding": "chunked"}
        assert read_all(wire, headers, room) == (data, b"next")

    def test_the_decoded_length_is_the_objects(self) -> None:
        headers = {**AWS, "content-length": "99", "x-amz-decoded-content-length": "7"}
        assert Body(source_of(b""), headers).size == 7

    @pytest.mark.parametrize("wire", [b"zz\r\n", b"-1\r\n", b"\r\n", b"1\r\nab\r\n0\r\n\r\n"])
    def test_invalid_chunks_are_refused(self, wire: bytes) -> None:
        with pytest.raises(S3Error):
            read_all(wire, {"transfer-encoding": "chunked"}, 100)

    @pytest.mark.parametrize("wire", [b"", b"5\r\nab", b"2\r\nab\r\n", b"5"])
    def test_an_early_end_is_a_lost_connection(self, wire: bytes) -> None:
        with pytest.raises(ConnectionError):
            read_all(wire, {"transfer-encoding": "chunked"}, 100)
        with pytest.raises(ConnectionError):
            read_all(wire, {"content-length": "100"}, 100)


def inspect(
    data: bytes, *, offset: int | None = 0, key: str = KEY, verifies: bool = True
) -> UploadCheck:
    inspector = Inspector(key, offset=offset, verifies=verifies)
    for start in range(0, len(data), 1 << 16):
        inspector.take(memoryview(data)[start : start + (1 << 16)])
    return inspector.result()


def keystream(key: str, size: int, offset: int = 0, generation: int = 0) -> bytes:
    data = bytearray(size)
    Keystream(key, generation).readinto_at(offset, data)
    return bytes(data)


class TestInspector:
    @given(st.integers(1, 150_000), st.integers(0, 15))
    def test_the_right_bytes_of_any_generation(self, size: int, generation: int) -> None:
        check = inspect(keystream(KEY, size, generation=generation))
        assert (check.size, check.bad_bytes, check.checked_bytes) == (size, 0, size)
        assert check.generation == generation or size < 3

    @given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
    def test_every_wrong_byte_is_counted(self, at: int, flip: int) -> None:
        data = bytearray(WHOLE)
        data[at] ^= flip
        assert inspect(bytes(data)).bad_bytes == 1

    @given(st.integers(0, 10**9), st.integers(47, 70_000))
    def test_a_part_says_where_it_belongs(self, offset: int, size: int) -> None:
        check = inspect(keystream(KEY, size, offset), offset=None)
        assert (check.offset, check.bad_bytes, check.size) == (offset, 0, size)

    def test_the_bytes_of_another_offset_are_wrong(self) -> None:
        assert inspect(keystream(KEY, 1000, 16)).bad_bytes > 950

    def test_short_foreign_bytes_are_kept_long_ones_are_not(self) -> None:
        assert inspect(b"marker", key="barrier/open").verbatim == b"marker"
        # A record of a function grows with its operations.
        assert inspect(bytes(100_000), key="barrier/open").verbatim == bytes(100_000)
        long = inspect(bytes(KEPT_UNDECLARED_BYTES + 1), key="barrier/open")
        assert (long.verbatim, long.generation) == (None, None)
        declared = inspect(bytes(KEPT_BYTES + 1), key="0" * 32 + f".{KEPT_BYTES + 1}", offset=None)
        assert (declared.verbatim, declared.generation) == (None, None)

    def test_without_inspection_all_bytes_are_accepted(self) -> None:
        check = inspect(bytes(100_000), verifies=False)
        assert (check.size, check.bad_bytes, check.checked_bytes) == (100_000, 0, 0)


def part(offset: int, size: int, generation: int = 0) -> UploadCheck:
    """The inspector's result for a correct part, without generating its bytes."""
    return UploadCheck(size=size, bad_bytes=0, generation=generation, offset=offset, verbatim=None)


def placed(parts: dict[int, UploadCheck]) -> tuple[int, int]:
    found = assemble(KEY, parts, [(n, etag_of(p)) for n, p in parts.items()], verifies=True)
    return found.size, found.generation


class TestParts:
    @given(st.lists(st.integers(MIN_PART_BYTES, 9 * MIB), max_size=6), st.integers(47, MIB))
    def test_parts_of_any_size_make_one_object(self, sizes: list[int], last: int) -> None:
        parts, offset = {}, 0
        for number, size in enumerate([*sizes, last], start=2):
            parts[number] = part(offset, size, 3)
            offset += size
        assert placed(parts) == (offset, 3)

    def test_short_parts_of_foreign_objects_are_kept(self) -> None:
        """A library that writes every object in parts writes markers so, too."""
        parts = {
            number: UploadCheck(size=1, bad_bytes=0, generation=None, offset=None, verbatim=text)
            for number, text in ((1, b"+"),)
        }
        listed = [(number, etag_of(one)) for number, one in parts.items()]
        assert assemble("run/barrier/0", parts, listed, verifies=True).verbatim == b"+"
        with pytest.raises(S3Error):
            assemble(KEY, parts, listed, verifies=True)

    def test_a_part_too_short_to_tell_is_compared_when_its_place_is_known(self) -> None:
        tail = inspect(keystream(KEY, 9, MIN_PART_BYTES), offset=None)
        assert placed({1: part(0, MIN_PART_BYTES), 2: tail}) == (MIN_PART_BYTES + 9, 0)
        wrong = inspect(b"123456789", offset=None)
        with pytest.raises(S3Error, match="part 2 holds bytes from None"):
            placed({1: part(0, MIN_PART_BYTES), 2: wrong})

    @pytest.mark.parametrize(
        ("parts", "code"),
        [
            ({1: part(0, MIN_PART_BYTES), 2: part(0, MIN_PART_BYTES)}, "BadDigest"),
            ({1: part(0, MIN_PART_BYTES), 2: part(MIN_PART_BYTES, 50, 1)}, "BadDigest"),
            ({2: part(0, MIN_PART_BYTES), 1: part(MIN_PART_BYTES, 50)}, "InvalidPartOrder"),
            ({1: part(0, 50), 2: part(50, 50)}, "EntityTooSmall"),
            ({}, "InvalidPartOrder"),
        ],
    )
    def test_other_parts_do_not(self, parts: dict[int, UploadCheck], code: str) -> None:
        with pytest.raises(S3Error) as caught:
            placed(parts)
        assert caught.value.code == code

    def test_a_part_that_never_came_is_missed(self) -> None:
        with pytest.raises(S3Error, match="no part 2"):
            assemble(
                KEY,
                {1: part(0, MIN_PART_BYTES)},
                [(1, etag_of(part(0, MIN_PART_BYTES))), (2, "x")],
                verifies=True,
            )


FOREIGN = StoredObject(key="k", size=1, verbatim=b"x")


class TestObjects:
    def test_a_key_that_declares_its_size_need_not_be_written(self) -> None:
        for strict in (False, True):
            objects = ObjectTable(strict=strict)
            assert (objects.find("b", KEY) is None) == strict
            assert objects.find("b", KEY, written=True) is None
            assert objects.find("b", "other") is None
            written = objects.put("b", StoredObject(key=KEY, size=200_000, generation=4))
            assert objects.find("b", KEY) == written
            assert written is not None
            assert written.generation == 4
            assert objects.find("c", KEY, written=True) is None

    @pytest.mark.parametrize("key", [KEY, "k"])
    def test_a_write_over_one_version_takes_effect_once(self, key: str) -> None:
        """Versions are compared and objects written in one step, with many concurrent requests."""

        def version(number: int) -> StoredObject:
            # An object whose key declares its size has generations, others have bytes.
            data = None if key == KEY else bytes([number])
            size = 200_000 if data is None else 1
            return StoredObject(key=key, size=size, generation=number, verbatim=data)

        objects = ObjectTable(strict=True)
        last = objects.put("b", version(0))
        for number in range(1, 20):
            assert last is not None
            contenders = [version(number + 20 * n) for n in range(8)]
            with ThreadPoolExecutor(8) as pool:
                put = partial(objects.put, "b", if_version=last.version)
                done = list(pool.map(put, contenders))
            (won,) = (one for one in done if one is not None)
            assert objects.find("b", key, written=True) == won
            last = objects.put("b", version(number), if_version=won.version)

    def test_conditional_puts_only_create_objects(self) -> None:
        objects, content = ObjectTable(strict=True), StoredObject(key="k", size=1, verbatim=b"x")
        assert objects.put("b", content, if_version=ABSENT)
        assert not objects.put("b", content, if_version=ABSENT)
        objects.delete("b", "k")
        assert objects.put("b", content, if_version=ABSENT)

    @pytest.mark.parametrize("content", [StoredObject(key=KEY, size=200_000), FOREIGN])
    def test_each_write_has_a_version_of_its_own(self, content: StoredObject) -> None:
        objects, versions = ObjectTable(strict=True), []
        for _ in range(3):
            assert objects.put("b", content) is not None
            found = objects.find("b", content.key)
            assert found is not None
            versions.append(found.version)
            assert objects.has_version("b", content.key, found.version)
            assert objects.delete("b", content.key, if_version=found.version)
            assert not objects.has_version("b", content.key, found.version)
        assert versions == sorted(set(versions))

    @pytest.mark.parametrize("content", [StoredObject(key=KEY, size=200_000), FOREIGN])
    def test_stale_conditions_neither_replace_nor_delete(self, content: StoredObject) -> None:
        objects = ObjectTable(strict=True)
        first, second = objects.put("b", content), objects.put("b", content)
        assert first is not None
        assert second is not None
        for version in (ABSENT, first.version):
            assert objects.put("b", content, if_version=version) is None
            assert not objects.delete("b", content.key, if_version=version)
        assert objects.find("b", content.key) == second
        assert objects.put("b", content, if_version=second.version)

    def test_generated_objects_have_a_version_too(self) -> None:
        objects = ObjectTable(strict=False)
        found = objects.find("b", KEY)
        assert found is not None
        assert objects.put("b", found, if_version=found.version)
        assert not objects.put("b", found, if_version=found.version)

    def test_a_copy_holds_the_bytes_of_its_source_and_a_copy_of_it_too(self) -> None:
        source, buffer = StoredObject(key=KEY, size=200_000), bytearray(200_000)
        twice = source.copy_to("other").copy_to("third")
        twice.readinto_at(0, memoryview(buffer))
        assert (buffer, twice.etag) == (WHOLE, source.etag)
        assert twice.copy_to(KEY) == source
        assert FOREIGN.copy_to("other").verbatim == FOREIGN.verbatim

    @given(
        st.sets(st.text("ab/\u00fc", min_size=1, max_size=6)),
        st.integers(1, 5),
        st.text("ab/", max_size=2),
    )
    def test_pages_of_a_listing_are_all_keys_in_order(
        self, keys: set[str], limit: int, prefix: str
    ) -> None:
        objects = ObjectTable(strict=True)
        for key in keys:
            objects.put("b", StoredObject(key=key, size=0, verbatim=b""))
        found: list[str] = []
        more = True
        while more:
            page, more = objects.page("b", prefix, found[-1] if found else "", limit)
            assert len(page) <= limit
            found += page
        assert found == sorted(key for key in keys if key.startswith(prefix))


class TestRanges:
    @pytest.mark.parametrize(
        ("text", "extent"),
        [
            ("", None),
            ("bytes=0-0", (0, 1)),
            ("bytes=5-", (5, 10)),
            ("bytes=-3", (7, 10)),
            ("bytes=-30", (0, 10)),
            ("bytes=8-30", (8, 10)),
            ("bytes=0-1,5-6", None),
            ("lines=1-2", None),
            ("bytes=-", None),
        ],
    )
    def test_a_range_of_ten_bytes(self, text: str, extent: tuple[int, int] | None) -> None:
        assert parse_request("GET", "/b/k", {"range": text}).extent(10) == extent

    @pytest.mark.parametrize("text", ["bytes=10-", "bytes=5-4", "bytes=-0"])
    def test_a_range_without_a_byte_is_refused(self, text: str) -> None:
        with pytest.raises(S3Error) as caught:
            parse_request("GET", "/b/k", {"range": text}).extent(10)
        assert caught.value.status == 416


@pytest.mark.parametrize(
    ("method", "target", "operation"),
    [
        ("PUT", "/b/k", "put"),
        ("PUT", "/b/k?partNumber=1&uploadId=u", "upload_part"),
        ("POST", "/b/k?uploads=", "create_multipart"),
        ("POST", "/b/k?uploadId=u", "complete_multipart"),
        ("DELETE", "/b/k?uploadId=u", "abort_multipart"),
        ("GET", "/b?list-type=2&prefix=a", "list_objects"),
        ("GET", "/b/", "list_objects"),
        ("GET", "/b/?uploads", "list_uploads"),
        ("POST", "/b?delete=", "delete_objects"),
        ("GET", "/", "list_buckets"),
        ("GET", "/b/k?acl", ""),
        ("GET", "/b?delimiter=/", ""),
        ("POST", "/b/k", ""),
    ],
)
def test_requests_are_classified(method: str, target: str, operation: str) -> None:
    asked = parse_request(method, target, {})
    if operation:
        assert asked.operation() == operation
    else:
        with pytest.raises(S3Error, match="does not support this"):
            asked.operation()


def test_a_function_is_known_by_the_name_its_client_gives() -> None:
    headers = {"user-agent": "Boto3/1.44 sbench-worker/host/12 x"}
    assert parse_request("GET", "/b/k", headers).function == "host/12"
    assert parse_request("GET", "/b/k", {}).function is None


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="--flip must be"):
        LoopbackSettings(rates={FaultKind.FLIP: 2.0})
    with pytest.raises(UsageError, match="--flip-bits"):
        LoopbackSettings(flip_bits=0)
