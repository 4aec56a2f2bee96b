"""What one small object costs, in core-milliseconds of the client, beside a plain draft.

    python -m benchmarks.small_objects [--rounds 7] [--size 4096] [--scheme http] [--threads 1]

The draft is what is possible in Python: a signature with a cached key, one send, as few
receives as the response allows, every byte made or compared, and four instants kept of each
operation. Beside it the same objects are written and read by the code that runs in a function,
with everything recorded that a run records, through each client that is asked for. One round
runs every subject once, each in a process of its own, in an order that rotates; ratios are
taken within a round. Only the client's own processor time is counted. The other end is the
loopback store, which forgets what it is given and makes what it is asked for.
"""

import argparse
import hashlib
import hmac
import json
import os
import socket
import ssl
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from benchmarks.common import cpu_s, make_parser, rotated, run_alone
from serverless_bench.clock import monotonic_ns, utc_stamp, wall_ns
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import object_key
from serverless_bench.job.load import Load
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.payload.keystream import Keystream
from serverless_bench.rundir.rows import column
from serverless_bench.stores.loopback.process import served
from serverless_bench.units import GIB, KIB, MIB, NS_PER_S
from serverless_bench.worker.invocation import run_invocation
from tests.network import bundle_of, certificate

DRAFT, BUCKET, REGION = "draft", "bench", "us-east-1"
KINDS: Final = ("put", "get")
SIZES: Final = (4 * KIB, 64 * KIB, 315 * KIB, MIB, 64 * MIB)
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_SIGNED: Final = "host;x-amz-content-sha256;x-amz-date"


class Draft:
    """Writes and reads objects over one connection, and keeps next to nothing.

    Parameters
    ----------
    url
        Of the store.
    size
        Of the largest object, in bytes.
    """

    def __init__(self, url: str, size: int) -> None:
        parts = urlsplit(url)
        self._host = parts.netloc
        self._line = socket.create_connection((parts.hostname, parts.port))
        self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
            self._line = context.wrap_socket(self._line, server_hostname=parts.hostname)
        self._room = memoryview(bytearray(size + 8 * KIB))
        self._second = 0
        self.rows: list[tuple[str, int, int, int, int, int, str | None, bool]] = []

    def put(self, key: str, size: int) -> None:
        """Write one object."""
        begin_ns = monotonic_ns()
        head = self._head("PUT", key, f"Content-Length: {size}\r\n")
        body = self._room[len(head) : len(head) + size]
        self._room[: len(head)] = head
        Keystream(key).readinto_at(0, body)
        self._line.sendall(self._room[: len(head) + size])
        sent_ns = monotonic_ns()
        status, headers, _, _ = self._response()
        row = (begin_ns, sent_ns, monotonic_ns(), status, headers.get("x-amz-request-id"), True)
        self.rows.append((key, size, *row))

    def get(self, key: str, size: int) -> None:  # noqa: ARG002 - as of put
        """Read one object and compare it."""
        begin_ns = monotonic_ns()
        self._line.sendall(self._head("GET", key))
        status, headers, begin, filled = self._response()
        first_ns = monotonic_ns()
        end = begin + int(headers["content-length"])
        while filled < end:
            filled += self._line.recv_into(self._room[filled:end])
        last_ns = monotonic_ns()
        agrees = Keystream(key).agrees(0, self._room[begin:end])
        row = (begin_ns, first_ns, last_ns, status, headers.get("x-amz-request-id"), agrees)
        self.rows.append((key, end - begin, *row))

    def _head(self, method: str, key: str, extra: str = "") -> bytes:
        path, date, host = quote(f"/{BUCKET}/{key}", safe="/~"), self._date(), self._host
        canonical = (
            f"{method}\n{path}\n\nhost:{host}\nx-amz-content-sha256:{_UNSIGNED}\n"
            f"x-amz-date:{date}\n\n{_SIGNED}\n{_UNSIGNED}"
        )
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{date}\n{self._scope}\n{hashed}"
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nx-amz-content-sha256: {_UNSIGNED}\r\n"
            f"x-amz-date: {date}\r\nAuthorization: AWS4-HMAC-SHA256 Credential="
            f"{os.environ['AWS_ACCESS_KEY_ID']}/{self._scope}, SignedHeaders={_SIGNED}, "
            f"Signature={signature}\r\n{extra}\r\n"
        ).encode()

    def _date(self) -> str:
        second = wall_ns() // NS_PER_S
        if second != self._second:
            self._second = second
            self._amz_date = utc_stamp(second * NS_PER_S)
            day = self._amz_date[:8]
            self._scope = f"{day}/{REGION}/s3/aws4_request"
            self._key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
            for part in self._scope.split("/"):
                self._key = hmac.digest(self._key, part.encode(), "sha256")
        return self._amz_date

    def _response(self) -> tuple[int, dict[str, str], int, int]:
        """Return status, headers, where the body begins, and where what has come ends."""
        filled = 0
        while True:
            filled += self._line.recv_into(self._room[filled:])
            head, end, _ = bytes(self._room[: min(filled, 8 * KIB)]).partition(b"\r\n\r\n")
            if end:
                break
        lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        return int(lines[0][9:12]), headers, len(head) + 4, filled


def drafted(url: str, size: int, threads: int) -> Callable[[str, Sequence[str]], None]:
    """Return what moves objects by the draft, over a connection per thread."""
    lanes = [Draft(url, size) for _ in range(threads)]

    def work(kind: str, keys: Sequence[str], number: int) -> None:
        move = getattr(lanes[number], kind)
        for key in keys[number::threads]:
            move(key, size)

    def run(kind: str, keys: Sequence[str]) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(partial(work, kind, keys), range(threads)))
        assert all(row[5] == 200 and row[7] for lane in lanes for row in lane.rows)

    return run


def harnessed(name: str, url: str, size: int, threads: int) -> Callable[[str, Sequence[str]], None]:
    """Return what moves objects as a function does, with everything recorded."""
    target = Target(client=name, bucket=BUCKET, endpoint_url=url, prefix="sbench/")

    def run(kind: str, keys: Sequence[str]) -> None:
        job = JobSpec(
            workload="write" if kind == "put" else "read",
            target=target,
            transfer=Transfer(),
            invocations=1,
            objects=len(keys),
            object_bytes=size if kind == "put" else None,
            load=Load(threads=threads),
        )
        read = keys if kind == "get" else ()
        (spec,) = invocation_specs(job, run_id="r", created_ns=1 << 62, keys=read)
        record = run_invocation(spec)
        assert record.error is None, record.error
        verified = sum(column(record.operations, "verified_bytes"))
        assert verified == (size * len(keys) if kind == "get" else 0)

    return run


def cost(subject: str, url: str, size: int, threads: int, objects: int) -> dict[str, float]:
    """Return core-milliseconds per object by direction, once connections and code are warm."""
    made = drafted if subject == DRAFT else partial(harnessed, subject)
    run = made(url, size, threads)
    name = partial(object_key, prefix="sbench/", run_id="benchmark", launch=0, number=0)
    keys = [name(index=index, size=size) for index in range(objects)]
    found = {}
    for kind in KINDS:
        run(kind, keys[: max(threads, objects // 20)])
        before_s = cpu_s()
        run(kind, keys)
        found[kind] = (cpu_s() - before_s) / objects * 1e3
    return found


def table(
    scheme: str,
    url: str,
    size: int,
    threads: int,
    subjects: Sequence[str],
    rounds: int,
    objects: int,
) -> None:
    """Measure every subject ``rounds`` times, in turn, and print rows."""
    found: dict[str, list[dict[str, float]]] = {subject: [] for subject in subjects}
    for subject in rotated(subjects, rounds):
        done = run_alone("benchmarks.small_objects", subject, url, size, threads, objects)
        found[subject].append(done)
    for kind in KINDS:
        for subject in subjects:
            each = [row[kind] for row in found[subject]]
            base = [row[kind] for row in found[DRAFT]]
            ratio = statistics.median(one / other for one, other in zip(each, base, strict=True))
            print(
                f"| {scheme} | {size / KIB:g} | {threads} | {kind} | {subject} |"
                f" {statistics.median(each):.3f} | {min(each):.3f} to {max(each):.3f} |"
                f" {ratio:.2f} |",
                flush=True,
            )


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = make_parser(__doc__, rounds=7)
    made.add_argument("--threads", type=int, action="append")
    made.add_argument("--size", type=int, action="append", help="bytes")
    made.add_argument("--scheme", action="append", choices=["http", "https"])
    made.add_argument("--client", action="append", help="wire, if none is named")
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    sizes = asked.size or ([4 * KIB] if asked.smallest else SIZES)
    rounds = 1 if asked.smallest else asked.rounds
    with tempfile.TemporaryDirectory() as scratch:
        pem = certificate(Path(scratch))
        os.environ |= {"AWS_CA_BUNDLE": str(bundle_of(pem)), "AWS_ACCESS_KEY_ID": "a"}
        os.environ["AWS_SECRET_ACCESS_KEY"] = "b"
        columns = "scheme | KiB | threads | operation | subject | core-ms | lowest to highest"
        print(f"| {columns} | x draft |")
        print("| --- | ---: | ---: | --- | --- | ---: | --- | ---: |", flush=True)
        for scheme in asked.scheme or ["http", "https"]:
            tls = ("--tls", str(pem)) if scheme == "https" else ()
            with served("--check", "none", *tls) as url:
                for size in sizes:
                    objects = 20 if asked.smallest else min(4000, max(16, GIB // size))
                    for threads in asked.threads or [1, 8]:
                        subjects = [DRAFT, *(asked.client or ["wire"])]
                        table(scheme, url, size, threads, subjects, rounds, objects)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        size, threads, objects = map(int, sys.argv[4:])
        print(json.dumps(cost(sys.argv[2], sys.argv[3], size, threads, objects)))
    else:
        main()
