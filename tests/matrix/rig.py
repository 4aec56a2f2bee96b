"""The servers of a cell of the fault matrix, and the judgement of its outcome."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import botocore.session
import numpy as np
import orjson

from serverless_bench.base.units import KIB, NS_PER_S
from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.clean import clean
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import ABSENT, is_text
from tests.clouds.lambda_hosts import LambdaHost
from tests.commands.command import COMMAND, Apart, Done
from tests.commands.processes import PATIENCE_S, until
from tests.stores.servers import Server

NUMBER = 8
OBJECTS = 2
OBJECT_BYTES = 256 * KIB
ROOT = Path(__file__).parents[2]
RESULTS = "FAULT_MATRIX"
"""Variable that names a file to append results to."""
PUBLISHED = RESULTS in os.environ
"""Whether the results are for docs/faults.csv, and have the time limits that docs/faults.md names.

Tests have others, which no function reaches on a machine that is many times busier: they mostly
wait, and a function that is late for them would be another fault than that of the cell.
"""
DEADLINE_S = 6 if PUBLISHED else 30
START_S = 5 if PUBLISHED else 30
SLOW_START_S = 15 if PUBLISHED else 60
"""``--start-timeout`` where a function loads more: Lithops' and Dask's."""
PROBING = ("lambda", "dask")
"""Executors that try their functions out first; ``test_probe.py`` has the faults of that."""
HOST_DEADLINE_S = DEADLINE_S + 19
"""A host ends a function that hangs at last; the driver has given it up before."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of one cell."""

    fault: str
    executor: str
    outcome: str
    recovered: int
    """Functions that have a record in the end."""
    requested: int
    detect_s: float | None
    """Time from the launch until the driver knew; None without losses."""
    orphans: int
    """Objects, control objects and uploads that are left after ``sbench clean``."""

    def save(self) -> None:
        if path := os.environ.get(RESULTS):
            with Path(path).open("a") as file:
                file.write(json.dumps(asdict(self)) + "\n")


@dataclass(frozen=True, kw_only=True)
class Rig:
    """Common parts of the cells of one executor."""

    executor: str
    store: Server
    directory: Path
    environment: Mapping[str, str]
    flags: Sequence[str] = ()
    number: int = NUMBER
    """Functions of a run."""
    concurrency: int = 5
    """Number of concurrent cells: a cell mostly waits, for silent functions and late
    deliveries.
    """
    start_s: float = START_S
    """``--start-timeout``."""
    plain: LambdaHost | None = None
    """A host without faults."""
    faulty: "SimpleQueue[LambdaHost]" = field(default_factory=SimpleQueue)
    """Hosts that only one cell at a time uses."""
    workers: int = 0
    """Processes that take events, of its own for each cell."""
    ending: ExitStack = field(default_factory=ExitStack)
    """Ends processes that cells have left."""

    def trial(self, name: str, host: LambdaHost | None = None) -> "Trial":
        """Begin a run of its own, below prefixes of its own."""
        directory = self.directory / name
        directory.mkdir()
        environment = {**self.environment, "PYTHONPATH": str(ROOT)}
        host = host or self.plain
        if host is not None:
            environment |= host.environment
        return Trial(self, name, Apart(directory, environment))

    @contextmanager
    def faulty_host(self) -> Iterator[LambdaHost]:
        """Have a host for oneself."""
        host = self.faulty.get(timeout=PATIENCE_S)
        try:
            yield host
        finally:
            host.set_faults({})
            host.release()
            self.faulty.put(host)


class Trial:
    """One run with a fault, from its first function to its last object.

    Parameters
    ----------
    rig
        Rig of the executor.
    name
        Name of its directory and its prefixes.
    sbench
        The command in that directory.
    """

    def __init__(self, rig: Rig, name: str, sbench: Apart) -> None:
        self.rig = rig
        self.name = name
        self.sbench = sbench
        self.path = sbench.directory / "sbench-runs" / "w"
        self.errors = sbench.directory / "errors"
        """What a driver said that ``started`` has started."""
        self.endpoint_url = rig.store.endpoint_url
        self.requested = rig.number
        self.executor_flags = rig.flags
        self.workers_url = ""
        """Directory in which its workers look for events; empty for the driver's."""
        self._workers: list[subprocess.Popen[bytes]] = []
        self.target = Target(bucket=rig.store.bucket, endpoint_url=rig.store.endpoint_url)

    # The commands

    def write(
        self, *flags: str | int, workload: str = "write", timeout_s: float = 120, prefix: str = ""
    ) -> Done:
        """Run ``sbench write`` to its end; ``prefix`` goes before it in a shell."""
        self._have_workers()
        command = self._command(workload, timeout_s, flags)
        if prefix:
            command = ["bash", "-c", f"{prefix}; exec {shlex.join(command)}"]
        done = subprocess.run(
            command,
            cwd=self.sbench.directory,
            env={**os.environ, **self.sbench.environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, *flags: str | int) -> Iterator["subprocess.Popen[bytes]"]:
        """Have ``sbench write`` running; it is over when the block is."""
        self._have_workers()
        with self.errors.open("wb") as errors:
            process = subprocess.Popen(
                self._command("write", 120, flags),
                cwd=self.sbench.directory,
                env={**os.environ, **self.sbench.environment},
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _have_workers(self) -> None:
        """Start the workers of the cell, each anew whenever it ends, as a service would."""
        if self._workers:
            return
        where = ("--endpoint-url", self.workers_url or self.endpoint_url)
        control = f"s3://{self.target.bucket}/{self.prefixes[1]}"
        command = [*COMMAND, "worker", "--control", control, *where]
        while len(self._workers) < self.rig.workers:
            worker = subprocess.Popen(
                ["bash", "-c", 'while :; do "$@" || sleep 1; done', "workers", *command],
                cwd=self.sbench.directory,
                env={**os.environ, **self.sbench.environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._workers.append(worker)
        self.rig.ending.callback(self._end_workers)
        for worker in self._workers:
            assert worker.stdout is not None
            assert b"takes events from" in worker.stdout.readline()

    def _end_workers(self) -> None:
        while self._workers:
            with self._workers.pop() as worker:
                os.killpg(worker.pid, signal.SIGKILL)

    def _command(self, workload: str, timeout_s: float, flags: Sequence[str | int]) -> list[str]:
        control: list[str] = []
        if self.rig.executor != "local":
            control = [
                "--control-prefix",
                self.prefixes[1],
                "--start-timeout",
                str(self.rig.start_s),
            ]
        if self.rig.executor in PROBING:
            # A probe gives up after seconds, which a busy machine takes: then nothing is launched.
            control.append("--no-probe")
        return [
            *(sys.executable, "-m", "tests.matrix.driver", workload, str(timeout_s)),
            *("--executor", self.rig.executor, *self.executor_flags, *control),
            *("--endpoint-url", self.endpoint_url, "--bucket", self.rig.store.bucket),
            *("--prefix", self.prefixes[0], "--deadline", str(DEADLINE_S), "--name", "w"),
            *(
                "--number",
                str(self.rig.number),
                "--objects",
                str(OBJECTS),
                "--size",
                f"{OBJECT_BYTES}B",
            ),
            *("--format", "json", *map(str, flags)),
        ]

    def resume(self) -> Done:
        return self.sbench("resume", "sbench-runs/w", "--format", "json")

    def clean(self) -> int:
        """Clean up, and return how much is left."""
        cleaned = clean(self.path)
        assert not cleaned.deleted.failed
        assert not cleaned.deleted.foreign
        return len(self.left())

    # Contents of the store and the records

    @property
    def prefixes(self) -> tuple[str, str]:
        """Prefixes of the data, and of claims and records."""
        # Matrices of several executors share a store, and must not count each other's objects.
        own = f"{self.rig.executor}/{self.name}"
        return f"{own}/data/", f"{own}/control/"

    def objects(self) -> dict[str, int]:
        """Sizes by key of everything below both prefixes."""
        found: dict[str, int] = {}
        with closing(open_s3(self.target)) as s3:
            pages = s3.get_paginator("list_objects_v2")
            for prefix in self.prefixes:
                for page in pages.paginate(Bucket=self.target.bucket, Prefix=prefix):
                    found |= {entry["Key"]: entry["Size"] for entry in page.get("Contents", ())}
        return found

    def left(self) -> list[str]:
        """Keys, and keys of open uploads."""
        with closing(open_s3(self.target)) as s3:
            answers = [
                s3.list_multipart_uploads(Bucket=self.target.bucket, Prefix=prefix)
                for prefix in self.prefixes
            ]
        uploads = [upload for answer in answers for upload in answer.get("Uploads", ())]
        return [*self.objects(), *(upload["Key"] for upload in uploads)]

    def check(self, done: Done | None = None) -> Summary:
        """Check the identities, the bytes and the causes of the current run."""
        run = load_run(self.path)
        summary = summarize(run)
        counts = {name: getattr(summary, name) for name in COUNTS}
        if done is not None:
            assert {name: done.json[name] for name in COUNTS} == counts
        assert summary.requested == summary.ok + summary.failed + summary.lost == self.requested
        if done is None or done.code != 8:  # else some records are only in the report
            received = self._deliveries()
            assert len(received) == summary.ok + summary.failed + summary.duplicate
            assert len(set(received)) == len(received), "a record is counted once"
        self._check_bytes(run, summary)
        lost = is_text(run.functions["status"], "lost") | is_text(run.functions["status"], "failed")
        assert all(run.functions["error"][lost])
        assert summary.withheld == ()
        return summary

    def _lines(self) -> list[bytes]:
        # An unfinished last line was cut off.
        return (self.path / "records.jsonl").read_bytes().split(b"\n")[:-1]

    def received(self) -> int:
        """Return how many records the driver has saved by now."""
        path = self.path / "records.jsonl"
        return len(self._deliveries()) if path.exists() else 0

    def _deliveries(self) -> list[tuple[int, int, str | None]]:
        """Identifiers of all received records."""
        lines = [orjson.loads(line) for line in self._lines()]
        records = [line["record"] for line in lines if "record" in line]
        return [(r["index"], r["launch"], r["delivery"]) for r in records]

    def _check_bytes(self, run: Run, summary: Summary) -> None:
        """Check that no byte is counted twice, and that all counted bytes are in the store."""
        status = run.functions["status"][run.operations["function"]]
        counts = is_text(status, "ok") | is_text(status, "failed")
        counts &= np.array([error is None for error in run.operations["error"]], dtype=bool)
        keys = run.operations["key"][counts].tolist()
        there = self.objects()
        assert len(set(keys)) == len(keys)
        assert sum(there[key] for key in keys) == run.operations["bytes"][counts].sum()
        assert summary.bytes == OBJECT_BYTES * len(keys)
        # The ledger also has objects of functions that are not counted.
        data = {key for key in there if key.startswith(self.prefixes[0])}
        assert data <= set(run.ledger())

    def detect_s(self, *statuses: str) -> float | None:
        """Time until the driver knew the latest of the functions with these statuses."""
        functions = load_run(self.path).functions
        found = np.isin(functions["status"].astype(str), statuses)
        found &= functions["submitted_ns"] != ABSENT
        if not found.any():
            return None
        took = functions["collected_ns"][found] - functions["submitted_ns"][found]
        return float(took.max()) / NS_PER_S

    def waves(self) -> int:
        """Number of relaunches of missing functions."""
        return len(load_run(self.path).waves)

    def finish(self, fault: str, outcome: str, detect_s: float | None) -> Result:
        """Clean up and return the cell."""
        summary = self.check()
        result = Result(
            fault=fault,
            executor=self.rig.executor,
            outcome=outcome,
            recovered=summary.ok + summary.failed,
            requested=summary.requested,
            detect_s=detect_s,
            orphans=self.clean(),
        )
        self._end_workers()
        return result


COUNTS = ("requested", "ok", "failed", "lost", "duplicate", "bytes")


@contextmanager
def client_of(host: LambdaHost) -> Iterator[Any]:
    """Lambda's own API."""
    environment = host.environment
    caller = botocore.session.Session().create_client(
        "lambda",
        endpoint_url=host.url,
        region_name="us-east-1",
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    try:
        yield caller
    finally:
        caller.close()


def idle(host: LambdaHost) -> None:
    """Wait until no function runs and no event waits."""

    def settled() -> bool:
        status = host.status()
        return not status["running"] and not status["queued"]

    until(settled)
