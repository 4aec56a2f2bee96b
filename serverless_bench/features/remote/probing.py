"""The probe of functions before a run, and deletion of its remains."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final

from serverless_bench.base.errors import OperationError
from serverless_bench.features.remote.claims import for_run
from serverless_bench.features.remote.probe import ProbeSpec
from serverless_bench.job.keys import listed
from serverless_bench.job.operations import CONTENDED, OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Trait
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
