"""The probe: describes an environment and checks that it may do everything a job needs.

It is a single invocation before all others, and the driver waits for its answer. It measures
nothing and leaves a claim, a record and an object of one byte below the run's prefixes. The driver
deletes them, or ``sbench clean`` if the driver lacks the permission. ``run_probe`` is the
function's side; ``probe_spec`` and ``tidy`` are the driver's.
"""

import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import NotFound, OperationError, SbenchError, last_failure
from serverless_bench.base.process import memory_mib, worker_id
from serverless_bench.clients import CLIENTS
from serverless_bench.features.custom.user_function import ALLOW_CODE
from serverless_bench.features.remote.claims import PROBE, PROBE_CLAIM, PROBE_RECORD, claim, for_run
from serverless_bench.job.keys import NOTE, listed
from serverless_bench.job.operations import CONTENDED, OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.types import described
from serverless_bench.job.workload import WORKLOADS, Trait
from serverless_bench.version import __version__
from serverless_bench.worker.invocation import take_for_warm
from serverless_bench.worker.object_io import ObjectIO

PROBES_AT_ONCE: Final = 16
NO_PROBE: Final = "to skip this check, switch `probe` off (--no-probe)"
_TIDY_S: Final = 1.0
_TRIED: Final = {
    "put": frozenset({OperationKind.PUT, *CONTENDED}),
    "get": frozenset(
        {*map(OperationKind, ("get", "get_range", "head", "copy", "scan")), *CONTENDED}
    ),
    "delete": frozenset({OperationKind.DELETE, OperationKind.DELETE_MANY}),
}
"""Requests that a function tries, with the kinds of operations that need them."""
_TRIAL_S: Final = 2.0
"""A rejection comes at once; a store that is silent for longer is unreachable."""
_DIGITS: Final = 16
_ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSpec:
    """Checks to make in an environment."""

    run_id: str
    number: int = 0
    """Number of the function within the job."""
    workload: str = ""
    """Workload that must be installed; empty for none."""
    target: Target | None = None
    """Location of the job's objects; None to skip it."""
    control: Target | None = None
    needs: tuple[str, ...] = ()
    """Requests of the job to the target: put, get, delete."""
    key: str = ""
    """An object that the job reads; empty to read the object written by the probe."""

    @property
    def mark(self) -> str:
        """Key of the object that the probe writes."""
        prefix = "" if self.target is None else self.target.prefix
        return f"{prefix}{self.run_id}/probe/{self.number}"

    @property
    def control_names(self) -> tuple[str, str]:
        """Names of the probe's claim and record."""
        return f"{PROBE_CLAIM}{self.number}", f"{PROBE_RECORD}{self.number}"


def run_probe(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description of this environment and its first missing permission, as JSON."""
    spec = described(ProbeSpec, event[PROBE], PROBE)
    cold, refused = take_for_warm(), ""
    # Billed requests of ``data`` and of ``control``, by kind.
    requests: dict[str, Counter[str]] = {}
    for description, attempt in _attempts(spec, requests):
        try:
            attempt()
        except SbenchError as exc:
            # The first failure stops the probe.
            refused = f"{description}: {last_failure(exc)}"
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
    """Return a short hash of each source file of this package, by relative path; none of tests."""
    return {
        path.relative_to(_ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]
        for path in sorted(_ROOT.rglob("*.py"))
        if "tests" not in path.relative_to(_ROOT).parts
    }


def _attempts(
    spec: ProbeSpec, requests: dict[str, Counter[str]]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the checks in order, each with a description."""
    if spec.workload:
        yield f"workload {spec.workload}", partial(WORKLOADS.load, spec.workload)
    if spec.target is not None:
        yield f"client {spec.target.client}", partial(CLIENTS.load, spec.target.client)
    if spec.control is not None:
        with closing(ObjectIO(for_run(spec.control, spec.run_id))) as store:
            requests["control"] = store.requests
            for request, attempt in _in_control(spec, store):
                yield f"{request} in bucket {spec.control.bucket}", attempt
    if spec.target is not None and spec.needs:
        # Keys of objects to read already include the prefix.
        with closing(ObjectIO(replace(spec.target, prefix=""))) as store:
            requests["data"] = store.requests
            for request, attempt in _in_data(spec, store):
                yield f"{request} in bucket {spec.target.bucket}", attempt


def _in_control(spec: ProbeSpec, store: ObjectIO) -> Iterator[tuple[str, Callable[[], object]]]:
    mine = {"run_id": spec.run_id, "probe": worker_id()}
    name, record = spec.control_names
    yield "put if absent", partial(claim, store, name, mine, timeout_s=_TRIAL_S)
    yield "get", partial(store.get, name, timeout_s=_TRIAL_S)
    yield "put", partial(store.put, record, json.dumps(mine).encode(), timeout_s=_TRIAL_S)


def _in_data(spec: ProbeSpec, store: ObjectIO) -> Iterator[tuple[str, Callable[[], object]]]:
    if "put" in spec.needs:
        yield "put", partial(store.put, spec.mark, NOTE, timeout_s=_TRIAL_S)
    if "get" in spec.needs:
        yield "get", partial(_look_at, store, spec.key or spec.mark)
    if "delete" in spec.needs:
        yield "delete", partial(store.delete, spec.mark, etag="", timeout_s=_TRIAL_S)


def _look_at(store: ObjectIO, key: str) -> None:
    """Read the first byte; a missing object is left for the job to report."""
    with suppress(NotFound):
        store.head(key, 1, timeout_s=_TRIAL_S)


def tidy(specs: Sequence[ProbeSpec]) -> tuple[str, ...]:
    """Delete possible remains of the probe, and return the keys that could not be deleted.

    They are deleted without checking for them: only the probe of this run uses these names.
    Remaining claims and records are found by ``sbench clean``.
    """
    spec = specs[0]
    if spec.control is not None:
        names = [name for probe in specs for name in probe.control_names]
        _delete(for_run(spec.control, spec.run_id), names)
    if spec.target is None or "put" not in spec.needs:
        return ()
    return _delete(replace(spec.target, prefix=""), [probe.mark for probe in specs])


def _delete(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """Delete these names, and return those that could not be deleted."""
    with closing(ObjectIO(target)) as store, ThreadPoolExecutor(PROBES_AT_ONCE) as threads:
        return tuple(filter(None, threads.map(partial(_remaining, store), names)))


def _remaining(store: ObjectIO, name: str) -> str:
    """Return the name if it cannot be deleted, else ''."""
    try:
        store.delete(name, etag="", timeout_s=_TIDY_S)
    except OperationError:
        return name
    return ""


def probe_spec(job: JobSpec, run_id: str, keys: Sequence[str] = ()) -> ProbeSpec:
    """Return the probe for the functions of a job."""
    kinds = {kind for kind, weight in job.declared.kinds(job.load).items() if weight}
    if Trait.NEEDS_SIZE in job.declared.traits and not job.reads_given:
        # A mix writes its objects first.
        kinds.add(OperationKind.PUT)
    reads, gated = bool(kinds & _TRIED["get"]), "barrier" in job.options
    # The start barrier also uses put and get.
    needs = tuple(name for name, of in _TRIED.items() if kinds & of or (gated and name != "delete"))
    return ProbeSpec(
        run_id=run_id,
        workload=job.workload,
        target=job.target if needs else None,
        control=job.control,
        needs=needs,
        key=listed(keys[0])[0] if keys and reads else "",
    )
