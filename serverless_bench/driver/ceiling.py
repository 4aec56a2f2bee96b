"""The harness ceiling: the same job against a store that keeps nothing.

A result near the ceiling is a result about this machine and this client, not about the
store. The job is the same but for its length: a few GB, so that it takes seconds.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from serverless_bench.analysis.summary import summarize
from serverless_bench.driver.run import run_job
from serverless_bench.errors import StoreError, UsageError
from serverless_bench.job.keys import declared_size, object_key
from serverless_bench.job.spec import JobSpec, Target
from serverless_bench.stores.loopback.asked import STATISTICS
from serverless_bench.units import GIB, format_rate

_LIMIT_BYTES: Final = 4_000_000_000
_LEAST_BYTES: Final = 1_000_000
_HERE: Final = frozenset({"inline", "local"})
_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What the harness reaches when the store costs next to nothing."""

    bytes_per_s: float
    """Of the whole run, as ``Summary.whole_bytes_per_s``."""
    store_core_s_per_gib: float
    """What the store that keeps nothing takes of this machine meanwhile."""

    def sentence(self, whole_bytes_per_s: float | None) -> str:
        """Return one line for the report of a run."""
        text = (
            f"harness ceiling: {format_rate(self.bytes_per_s)}"
            " (this machine and client against a store that keeps nothing)"
        )
        if whole_bytes_per_s is None:
            return text
        return f"{text}; the result is {100 * whole_bytes_per_s / self.bytes_per_s:.0f} % of it"


def check_ceiling(job: JobSpec) -> None:
    """Refuse to measure the ceiling where it would measure something else; call it before the run.

    Raises
    ------
    UsageError
        If functions run elsewhere, or do something other than write or read.
    """
    if job.executor not in _HERE:
        raise UsageError(
            f"`ceiling` needs functions on this machine, not {job.executor!r}",
            hint="sbench serve --host on a machine of theirs is a store to compare with",
        )
    if job.workload not in {"read", "write"}:
        raise UsageError(f"`ceiling` is for write and read, not {job.workload!r}")


def measure_ceiling(job: JobSpec, keys: Sequence[str] = ()) -> Ceiling:
    """Run ``job``, shortened, against a loopback store that drains.

    Parameters
    ----------
    job
        A write or a read that was performed.
    keys
        What it read; their sizes are all that counts.

    Raises
    ------
    StoreError
        If the loopback store does not start.
    SbenchError
        As ``run_job`` does.
    """
    check_ceiling(job)
    known = [size for size in map(declared_size, keys) if size]
    # What one function reads of an object is an object to the store that drains.
    size = job.object_bytes or max(1, max(known, default=_LEAST_BYTES) // (job.load.split or 1))
    total = sum(known) * job.repeats or job.invocations * job.objects * size
    invocations = min(job.invocations, job.concurrency)
    size = min(size, _LIMIT_BYTES // invocations)
    objects = max(1, min(total, _LIMIT_BYTES) // (invocations * size))
    reads = job.workload == "read"
    with _drain() as store, tempfile.TemporaryDirectory() as scratch:
        short = replace(
            job,
            target=Target(client=job.target.client, bucket="any", endpoint_url=store.url),
            invocations=invocations,
            objects=1 if reads else objects,
            object_bytes=None if reads else size,
            repeats=1,
            duration_s=None,
            warmup=0,
            gate=None,
            load=replace(job.load, split=None),
        )
        made_up = _keys(invocations * objects, size) if reads else ()
        run = run_job(short, Path(scratch) / "ceiling", keys=made_up)
        summary, counted = summarize(run), store.statistics()
    if not summary.whole_bytes_per_s:
        raise StoreError("the harness ceiling could not be measured", hint="see `timeout`")
    cpu_s = counted["cpu_user_s"] + counted["cpu_sys_s"]
    return Ceiling(
        bytes_per_s=summary.whole_bytes_per_s,
        store_core_s_per_gib=cpu_s / (summary.bytes / GIB),
    )


def _keys(count: int, size: int) -> list[str]:
    # The loopback store has every object whose key declares its size.
    make = partial(object_key, prefix="sbench/", run_id="ceiling", index=0, attempt=0, size=size)
    return [make(number=number) for number in range(count)]


@dataclass(frozen=True, slots=True)
class _Drain:
    url: str

    def statistics(self) -> dict[str, Any]:
        """Return what the store did so far."""
        # Loopback never goes through a proxy.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(self.url + STATISTICS, timeout=10) as answer:
            return dict(json.load(answer))


@contextmanager
def _drain() -> Iterator[_Drain]:
    """Run a loopback store that drains, in a process of its own, for the length of a block."""
    before = {name: os.environ.get(name) for name in _CREDENTIALS}
    os.environ.update(_CREDENTIALS)
    # The user's defaults are for their own server, not for this one.
    own = {k: v for k, v in os.environ.items() if not k.startswith("SBENCH_")}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "serverless_bench", "serve", "--check", "none"],
        env={**own, "SBENCH_CONFIG": os.devnull},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        first = process.stdout.readline() if process.stdout else ""
        if not first:
            raise StoreError("the loopback store does not start", hint="try: sbench serve")
        yield _Drain(first.split()[-1])
    finally:
        process.terminate()
        process.communicate()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
