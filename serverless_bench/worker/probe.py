"""The probe: what an environment is, and whether it may do what a job needs.

One invocation that waits for its answer comes before all others. It measures nothing and
leaves a claim, a record and an object of one byte below the run's own prefixes, which the
driver deletes, or ``sbench clean`` if the driver may not.
"""

import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from serverless_bench.clients import CLIENTS
from serverless_bench.errors import NotFound, SbenchError, last_failure
from serverless_bench.job.target import Target
from serverless_bench.job.types import described
from serverless_bench.job.workload import WORKLOADS
from serverless_bench.process import memory_mib, worker_id
from serverless_bench.version import __version__
from serverless_bench.worker.claims import PROBE, PROBE_CLAIM, PROBE_RECORD, claim, for_run
from serverless_bench.worker.invocation import take_for_warm
from serverless_bench.worker.object_io import ObjectIO
from serverless_bench.worker.user_function import ALLOW_CODE

MARK: Final = b"+"
"""What the object holds, as those of a gate."""
_TRIAL_S: Final = 2.0
"""A refusal comes at once; who is silent for longer is out of reach."""
_DIGITS: Final = 16
_ROOT: Final = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSpec:
    """What an environment is to try."""

    run_id: str
    number: int = 0
    """Of the function among those of the job."""
    workload: str = ""
    """Whose code has to be there; empty for none."""
    target: Target | None = None
    """Where the job's objects are; None to leave it alone."""
    control: Target | None = None
    needs: tuple[str, ...] = ()
    """What the job does there: put, get, delete."""
    key: str = ""
    """An object that the job reads; empty to read what the probe has put."""

    @property
    def mark(self) -> str:
        """The key of the object that it puts."""
        prefix = "" if self.target is None else self.target.prefix
        return f"{prefix}{self.run_id}/probe/{self.number}"

    @property
    def control_names(self) -> tuple[str, str]:
        """The names of its claim and of its record."""
        return f"{PROBE_CLAIM}{self.number}", f"{PROBE_RECORD}{self.number}"


def run_probe(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what this environment is, and what it may not do; JSON in and JSON out."""
    spec = described(ProbeSpec, event[PROBE], PROBE)
    cold, refused = take_for_warm(), ""
    # Billed requests, of ``data`` and of ``control``, by kind.
    requests: dict[str, Counter[str]] = {}
    for what, attempt in _attempts(spec, requests):
        try:
            attempt()
        except SbenchError as exc:
            # After which nothing else is tried.
            refused = f"{what}: {last_failure(exc)}"
            break
    return {
        "worker_id": worker_id(),
        "cold": cold,
        "version": __version__,
        "files": code_files(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "memory_mib": memory_mib(),
        "region": os.environ.get("AWS_REGION", ""),
        "allows_code": os.environ.get(ALLOW_CODE) == "1",
        "refused": refused,
        "requests": requests,
    }


def code_files() -> dict[str, str]:
    """Return a short hash of each source file of this package, by its path in it."""
    return {
        path.relative_to(_ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]
        for path in sorted(_ROOT.rglob("*.py"))
    }


def _attempts(
    spec: ProbeSpec, requests: dict[str, Counter[str]]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is tried, in this order, and how."""
    if spec.workload:
        yield f"workload {spec.workload}", partial(WORKLOADS.load, spec.workload)
    if spec.target is not None:
        yield f"client {spec.target.client}", partial(CLIENTS.load, spec.target.client)
    if spec.control is not None:
        with closing(ObjectIO(for_run(spec.control, spec.run_id))) as store:
            requests["control"] = store.requests
            for what, attempt in _in_control(spec, store):
                yield f"{what} in bucket {spec.control.bucket}", attempt
    if spec.target is not None and spec.needs:
        # Keys of objects to read have their prefix.
        with closing(ObjectIO(replace(spec.target, prefix=""))) as store:
            requests["data"] = store.requests
            for what, attempt in _in_data(spec, store):
                yield f"{what} in bucket {spec.target.bucket}", attempt


def _in_control(spec: ProbeSpec, store: ObjectIO) -> Iterator[tuple[str, Callable[[], object]]]:
    mine = {"run_id": spec.run_id, "probe": worker_id()}
    name, record = spec.control_names
    yield "put if absent", partial(claim, store, name, mine, timeout_s=_TRIAL_S)
    yield "get", partial(store.get, name, timeout_s=_TRIAL_S)
    yield "put", partial(store.put, record, json.dumps(mine).encode(), timeout_s=_TRIAL_S)


def _in_data(spec: ProbeSpec, store: ObjectIO) -> Iterator[tuple[str, Callable[[], object]]]:
    if "put" in spec.needs:
        yield "put", partial(store.put, spec.mark, MARK, timeout_s=_TRIAL_S)
    if "get" in spec.needs:
        yield "get", partial(_look_at, store, spec.key or spec.mark)
    if "delete" in spec.needs:
        yield "delete", partial(store.delete, spec.mark, etag="", timeout_s=_TRIAL_S)


def _look_at(store: ObjectIO, key: str) -> None:
    """Read the first byte: an object that is not there is the job's affair."""
    with suppress(NotFound):
        store.head(key, 1, timeout_s=_TRIAL_S)
