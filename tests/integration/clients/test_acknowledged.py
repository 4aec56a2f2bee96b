"""Bytes of a write count when the store's kernel has them: held against stores that know."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from serverless_bench.base.errors import OperationError
from serverless_bench.base.units import KIB, MIB, NS_PER_S
from serverless_bench.clients import open_client
from serverless_bench.clients.send_queue import AT_ONCE, SendQueue
from serverless_bench.clients.wire.connect import _tls_context
from serverless_bench.driver.run import run_job
from serverless_bench.features.testing.client_parts import PatientMeter, RangeOf
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.metrics.spreading import elapsed_before
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Ints
from tests.stores.bucket import OURS, THEIRS, best_s, token_bucket
from tests.stores.faulty import Exchange, FaultServer
from tests.stores.network import certificate
from tests.stores.servers import KEYS, loopback
from tests.twice import two_of_three

ASKED = ("wire", "boto3", "minio")
CONNECTIONS = 4


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def small_buffers(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * KIB)


def test_the_queue_is_unacknowledged_bytes_even_after_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        small_buffers(listener)
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        queue = SendQueue(ours)
        assert queue.look() == 0
        ours.settimeout(0)
        sent = ours.send(bytes(8 * MIB))
        while (waiting := queue.look()) == sent:
            pass
        # Bytes in the peer's kernel are acknowledged, although no process has read them.
        assert 0 < waiting < sent
        received = 0
        theirs.settimeout(10)
        while received < sent:
            received += len(theirs.recv(MIB))
        while queue.look():
            pass
        ours.send(b"x")
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        ours.close()
        assert queue.look() == 0


def test_without_the_kernels_answer_no_byte_is_acknowledged() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert SendQueue(one).look() > MIB


def takes_no_body(exchange: Exchange) -> bool:
    """Answer 503 to the head, read no byte of the body, and wait for the client to go."""
    exchange.say(503, b"<Error><Code>SlowDown</Code></Error>", {"Connection": "close"})
    exchange.over.wait(0.2)
    return False


@pytest.mark.parametrize("name", ASKED)
def test_what_a_refused_upload_moved_is_what_the_store_had_room_for(name: str) -> None:
    size = 16 * MIB
    with FaultServer(repeat(takes_no_body), receive_buffer=32 * KIB) as server:
        target = Target(client=name, bucket="bucket", endpoint_url=server.endpoint_url)
        client, meter = open_client(target, Transfer()), PatientMeter()
        with pytest.raises(OperationError):
            client.put("key", RangeOf("key", 0, size), meter)
        meter.stop()
        client.close()
    # The store's kernel had no more room; the client's kernel accepted megabytes.
    assert meter.bytes < MIB
    assert meter.bytes == meter.curve[-1][1]


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("size", [0, AT_ONCE, AT_ONCE + 1, 5 * MIB])
def test_all_of_a_put_counts_once_it_is_acknowledged(name: str, size: int) -> None:
    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        exchange.say(200, headers={"ETag": '"etag"'})
        return True

    with FaultServer(repeat(answer)) as server:
        target = Target(client=name, bucket="bucket", endpoint_url=server.endpoint_url)
        client, meter = open_client(target, Transfer()), PatientMeter()
        client.put("key", RangeOf("key", 0, size), meter)
        meter.stop()
        client.close()
    assert meter.bytes == meter.curve[-1][1] == size
    moved = [count for _, count in meter.curve]
    assert moved == sorted(moved)
    assert sorted(at for at, _ in meter.curve) == [at for at, _ in meter.curve]


@pytest.mark.timing
@pytest.mark.parametrize("name", ["wire", pytest.param("boto3", marks=pytest.mark.full)])
def test_a_store_that_reads_slowly_has_no_peak_above_its_rate(name: str, tmp_path: Path) -> None:
    two_of_three(lambda: check_slow_store(name, Path(mkdtemp(dir=tmp_path))))


def check_slow_store(name: str, tmp_path: Path) -> None:
    rate = CONNECTIONS * 2 * MIB
    with loopback("--check", "none", "--connection-rate", "2MiB", log=tmp_path / "log") as store:
        job = JobSpec(
            workload="write",
            target=Target(client=name, bucket="any", endpoint_url=store.endpoint_url),
            number=CONNECTIONS,
            concurrency=CONNECTIONS,
            size=4 * MIB,
            network_rate=1.1 * rate,
        )
        summary = summarize(run_job(job, tmp_path / "run"))
    assert summary.withheld == ()
    assert summary.peak_1s_bytes_per_s is not None
    assert 0.9 <= summary.peak_1s_bytes_per_s / rate <= 1.1


@pytest.fixture
def ahead_of_others() -> Iterator[None]:
    """Give the processes of the test priority: the client and the store take timestamps."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, before - 15)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.mark.timing
@pytest.mark.usefixtures("ahead_of_others")
@pytest.mark.parametrize(
    ("name", "mbit", "objects", "mib", "scheme"),
    [
        pytest.param("wire", 20, 2, 1, "http", marks=pytest.mark.full),
        ("wire", 400, 10, 4, "https"),
        pytest.param("boto3", 20, 2, 1, "http", marks=pytest.mark.full),
    ],
)
def test_behind_a_token_bucket_a_write_shows_the_buckets_rate(
    name: str,
    mbit: int,
    objects: int,
    mib: int,
    scheme: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pem = None
    if scheme == "https":
        pem = certificate(tmp_path, address=THEIRS)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))
        _tls_context.cache_clear()
    monkeypatch.setenv("no_proxy", f"{THEIRS},{OURS}")
    two_of_three(lambda: check_bucket(name, mbit, objects, mib, pem, Path(mkdtemp(dir=tmp_path))))
    _tls_context.cache_clear()


def check_bucket(
    name: str, mbit: int, objects: int, mib: int, pem: Path | None, directory: Path
) -> None:
    with token_bucket(mbit, pem) as store:
        job = JobSpec(
            workload="write",
            target=Target(client=name, bucket="bucket", endpoint_url=store.endpoint_url),
            number=CONNECTIONS,
            concurrency=CONNECTIONS,
            objects=objects,
            size=mib * MIB,
        )
        run = run_job(job, directory / "run")
    summary = summarize(run)
    whole = CONNECTIONS * objects * mib * MIB
    assert (summary.ok, summary.bytes, summary.withheld) == (CONNECTIONS, whole, ())
    assert summary.peak_1s_bytes_per_s is not None
    best = best_s(store.log.at_ns, store.log.total)
    assert best <= 1.6 * store.bytes_per_s
    # Headers, of requests and of segments, take a part of the rate. A busy machine may not reach
    # the rate; then the run shows at least the rate that the store saw.
    assert 0.85 * min(best, store.bytes_per_s) <= summary.peak_1s_bytes_per_s
    assert summary.peak_1s_bytes_per_s <= 1.1 * store.bytes_per_s
    grid = np.arange(store.log.at_ns[0], store.log.at_ns[-1] + NS_PER_S // 2, NS_PER_S // 50)
    seen = np.interp(grid, store.log.at_ns, store.log.total * (whole / store.log.total[-1]))
    moved = cumulated(run, grid)
    assert moved[-1] == whole
    assert np.abs(moved - seen).max() <= MIB
    check_acknowledgements(run, store.log.last_in_ns)


def cumulated(run: Run, grid: Ints) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the bytes that a run reports as moved up to each time."""
    operations, steps = run.operations, run.steps
    row = run.operation_rows(steps)
    length = steps["step_ns"]
    begin = operations["start_ns"][row] + elapsed_before(length, row)
    total = np.zeros(len(grid))
    for at, took, count in zip(begin, length, steps["step_bytes"], strict=True):
        total += count * np.clip((grid - at) / max(took, 1), 0, 1)
    return total


def check_acknowledgements(run: Run, last_in_ns: dict[str, int]) -> None:
    """Check the times of last bytes, if reported, against the store's."""
    operations = run.operations
    off_ms = [
        abs(sent_ns - last_in_ns[f"/bucket/{key}"]) / 1e6
        for key, sent_ns in zip(operations["key"], operations["last_byte_sent_ns"], strict=True)
        if sent_ns > 0
    ]
    is_stamped = run.job.target.client == "wire" and run.job.size == 4 * MIB
    assert bool(off_ms) == is_stamped
    if off_ms:
        assert np.median(off_ms) <= 2
        assert np.quantile(off_ms, 0.95) <= 5
