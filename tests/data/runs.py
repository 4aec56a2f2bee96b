"""Hand-made runs, for tests that need known results."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.driver.origin import sealed
from serverless_bench.executors import EXECUTORS, executors_where
from serverless_bench.executors.base import ExecutorInfo
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.archive import Archive, Seal
from serverless_bench.rundir.digests import DIGEST, FILES, SEAL, GrowingDigest, header_digest
from serverless_bench.rundir.listing import HEADER, RECORDS
from serverless_bench.rundir.record import (
    Attempt,
    BadRange,
    InvocationRecord,
    Lost,
    OperationRecord,
    Outcome,
    Shown,
    Step,
)
from serverless_bench.rundir.run import Run, load_run

S = 10**9
TARGET = Target(bucket="b", endpoint_url="http://store")
LIKE = (
    "eNqrVirOrEpVslIwNDCxMDU301FQSsvPL0ktAgkZWQC5Rfnl8elF+aUFxUCh6OhoEx0FUyMTI0OLWB2F"
    "aBDLyAguEhtbCwCUQhWr"
)
"""The layout of a Parquet file of 1 MiB: two column chunks, and a footer of 248 bytes."""
OTHER_EXECUTOR = next(name for name in EXECUTORS if name != DEFAULT_EXECUTOR)


def executor_that(declares: Callable[[ExecutorInfo], bool]) -> str:
    """Return the name of an executor by its declaration; without one, skip the test."""
    names = executors_where(declares)
    if not names:
        pytest.skip("no executor declares this", allow_module_level=True)
    return names[0]


def executor_in_process() -> str:
    """Return the name of an executor that runs functions in this process."""
    return executor_that(lambda info: info.in_process)


def operation(
    index: int = 0,
    *,
    start_ns: int = 0,
    end_ns: int = S,
    size: int = 1000,
    kind: OperationKind = OperationKind.PUT,
    error: str | None = None,
    bad_bytes: int = 0,
) -> OperationRecord:
    put = kind is OperationKind.PUT
    return OperationRecord(
        index=index,
        kind=kind,
        key=f"sbench/{index:032x}.{size}",
        size=size,
        start_ns=start_ns,
        end_ns=end_ns,
        first_byte_ns=None if put else start_ns + (end_ns - start_ns) // 10,
        last_byte_sent_ns=end_ns - (end_ns - start_ns) // 10 if put else None,
        bytes=size,
        verified_bytes=0 if put else size - bad_bytes,
        bad_bytes=bad_bytes,
        bad_ranges=1 if bad_bytes else 0,
        payload_ns=0,
        error=error,
    )


def attempt(operation: int = 0, *, size: int = 1000, error: str | None = None) -> Attempt:
    return Attempt(
        operation=operation,
        request="put",
        part=0,
        number=0,
        start_ns=0,
        end_ns=1,
        wait_ns=0,
        status=200 if error is None else 503,
        error=error,
        detail=error,
        request_id="id",
        host_id=None,
        remote="127.0.0.1:1",
        reused=False,
        bytes=size,
    )


def record(
    index: int,
    operations: Sequence[OperationRecord],
    *,
    steps: Sequence[Step] | None = None,
    attempts: Sequence[Attempt] | None = None,
    bad_ranges: Sequence[BadRange] = (),
    error: str | None = None,
) -> InvocationRecord:
    if steps is None:
        steps = [
            Step(operation=op.index, step_ns=op.end_ns - op.start_ns, step_bytes=op.bytes)
            for op in operations
        ]
    if attempts is None:
        attempts = [attempt(op.index, size=op.bytes) for op in operations]
    return InvocationRecord(
        run_id="run",
        index=index,
        launch=0,
        worker_id=f"w{index}",
        cold_start=True,
        version="0",
        python="3",
        start_ns=min((op.start_ns for op in operations), default=0),
        end_ns=max((op.end_ns for op in operations), default=0),
        wall_start_ns=0,
        wall_end_ns=0,
        cpu_user_s=0.25,
        cpu_sys_s=0.25,
        max_rss_bytes=50 << 20,
        operations=tuple(operations),
        attempts=tuple(attempts),
        steps=tuple(steps),
        bad_ranges=tuple(bad_ranges),
        error=error,
    )


def outcome(result: InvocationRecord | Lost) -> Outcome:
    ends = 0 if isinstance(result, Lost) else result.end_ns
    return Outcome(submitted_ns=0, collected_ns=ends + S, result=result)


def lost(index: int, cause: str = "gone") -> Lost:
    return Lost(index=index, launch=0, cause=cause)


def job(
    *,
    number: int,
    workload: str = "write",
    concurrency: int = 100,
    size: int | None = 1000,
) -> JobSpec:
    return DescribedJob(
        name="by-hand",
        workload=workload,
        target=TARGET,
        number=number,
        concurrency=concurrency,
        size=size,
    )


def header(of: JobSpec) -> dict[str, object]:
    return {
        "run_id": "run",
        "created_ns": 0,
        "job": of.to_json(),
        "provenance": {"client": {"attempts": "exact", "shows": sorted(Shown)}},
    }


def saved(
    path: Path,
    outcomes: Sequence[Outcome],
    *,
    of: JobSpec | None = None,
    keys: Sequence[str] = (),
    ledger: Sequence[str] = (),
    created_ns: int = 0,
    seal: Seal = dict,
) -> Run:
    """Save outcomes as a run and load it again; it has a seal of this user with ``sealed``."""
    of = of or job(number=max(1, len(outcomes)))
    with Archive(
        path,
        header={**header(of), "created_ns": created_ns},
        ledger=ledger,
        keys=keys,
        seal=seal,
    ) as archive:
        for one in outcomes:
            archive.append(one)
    return load_run(path)


def long_ago(path: Path) -> None:
    """Make a run an hour older, so that `sbench clean` does not wait for late deliveries."""
    records, digest, lines = path / RECORDS, GrowingDigest(), list[bytes]()
    for text in records.read_text().splitlines():
        line = json.loads(text)
        for name in {"submitted_ns", "collected_ns"} & line.keys():
            line[name] -= 3600 * S
        if RECORDS in line.get("end", {}).get(FILES, {}):
            line["end"][FILES][RECORDS] = digest.to_json()
            # The seal remains valid, so that the run is still this user's.
            line["end"] = sealed(line["end"]) if line["end"].pop(SEAL, None) else line["end"]
        lines.append(f"{json.dumps(line)}\n".encode())
        digest.update(lines[-1])
    records.write_bytes(b"".join(lines))


def forge(path: Path, header: dict[str, Any]) -> None:
    """Write a header, with a digest of its content and without a valid seal."""
    header[DIGEST] = header_digest(header)
    (path / HEADER).write_text(json.dumps(header))
