"""Compute the totals of a run: a pure function without I/O, clock or formatting.

Only bytes of successful operations in counted invocations are included: goodput. Bytes of
failed attempts are in ``retried_bytes``. Worker timestamps are first converted to the driver's
clock, as far as the evidence allows (``clock_offsets``).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field, to_builtins

from serverless_bench.base.errors import CORRUPT, INCOMPLETE, WITHHELD, ArchiveError
from serverless_bench.base.units import GIB, NS_PER_S
from serverless_bench.metrics.attempt_stats import (
    AttemptStats,
    all_measured,
    attempt_stats,
    latency_without_backoff_s,
    measured_cpu_s,
    not_shown,
    shown,
    unrecorded_launches,
)
from serverless_bench.metrics.clock_offsets import Clocks, aligned, clocks, worker_offsets
from serverless_bench.metrics.display import Displayed
from serverless_bench.metrics.invariants import Facts, violations
from serverless_bench.metrics.latency import Latencies, latencies
from serverless_bench.metrics.part import Reduced, parts_of, present
from serverless_bench.metrics.throughput import (
    MissingFunctions,
    completion_s,
    elapsed,
    makespan_s,
    missing_functions,
    span,
    throughput,
)
from serverless_bench.metrics.timeline import (
    counted,
    function_spans,
    good_operations,
    measured_operations,
)
from serverless_bench.rundir.listing import as_argument
from serverless_bench.rundir.record import Shown
from serverless_bench.rundir.run import AnyRun, Run, as_run
from serverless_bench.rundir.schema import Neighbours, Stopped
from serverless_bench.rundir.tables import (
    ABSENT,
    READS,
    Mask,
    Percentiles,
    is_one_of,
    percentiles,
)

MAX_REPORTED_RANGES: Final = 50
REPORT_SCHEMA: Final = 1
"""Version of the JSON report, incremented when a field changes its meaning or is removed."""


class Summary(Displayed, Struct, frozen=True, kw_only=True):
    """The totals of a run; "Figures" in the documentation defines each field.

    ``requested = ok + failed + lost``, and the number of received records is ``ok + failed +
    duplicate``. Rates are None if the run has no such window or no bytes. ``print`` and notebooks
    show the table of ``sbench report``.

    Examples
    --------
    >>> summary = sbench.summarize(written)
    >>> summary.to_json()["ok"], summary.bytes
    (4, 4194304)
    """

    run_id: str
    name: str
    workload: str
    store: str
    client: str
    executor: str
    simulated: str | None
    requested: int
    ok: int
    failed: int
    lost: int
    duplicate: int
    unrecorded_launches: int
    ended: bool
    cleaned: bool
    skipped_lines: int
    bytes: int
    verified_bytes: int
    corrupt_objects: int
    bad_bytes: int
    unknown_objects: int
    peak_1s_bytes_per_s: float | None
    peak_5s_bytes_per_s: float | None
    steady_bytes_per_s: float | None
    steady_window_s: float | None
    throughput_bytes_per_s: float | None
    ops_per_s: float | None
    elapsed_s: float | None
    paused_s: float
    suspended_s: float | None
    makespan_s: float | None
    completion_s: Mapping[str, float | None]
    per_function_bytes_per_s: Percentiles | None
    ttfb_s: Percentiles | None
    ack_s: Percentiles | None
    latency_s: Percentiles | None
    latency_without_backoff_s: Percentiles | None
    operations: int
    failed_operations: int
    warmup_operations: int
    warmup_bytes: int
    attempt_stats: AttemptStats
    errors: Mapping[str, int]
    cold_starts: int
    workers: int
    cpu_s_per_gib: float | None
    peak_rss_bytes: int | None
    planned_concurrency: int
    object_bytes: int | None
    clocks: Clocks
    missing_functions: MissingFunctions | None
    withheld: tuple[str, ...]
    bad_ranges: tuple[Mapping[str, Any], ...]
    threads: int = 1
    idle_threads: int = 0
    batches_s: float | None = None
    latencies: Latencies = field(default_factory=Latencies)
    not_shown: tuple[str, ...] = ()
    neighbours: Neighbours | None = None
    stopped: Stopped | None = None
    polled: bool = False
    """Whether workers polled for events, so that no function was launched. Not in the report."""
    argument: str = ""
    """The run as an argument of commands. Not in the report."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Results of the workload, the policies and the place of this run, by JSON field."""

    @property
    def violated_keys(self) -> int:
        """Number of keys with which the store did what it must not do."""
        return sum(part.violated_keys(figures) for part, figures in present(self))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of a report; see "Figures" in the documentation.

        The fields are those of this class, with the fields of ``attempt_stats`` and of ``parts`` in
        their places.
        ``neighbours``, ``stopped``, ``batches_s`` and most parts are only included if present.
        """
        data = {"report_schema": REPORT_SCHEMA, **to_builtins(self, enc_hook=np.generic.item)}
        del data["polled"], data["argument"]
        parts, names = data.pop("parts"), list(data)
        for part in parts_of(self.workload):
            if part.in_all or part.name in parts:
                names.insert(names.index(part.after) + 1, part.name)
                data[part.name] = parts.get(part.name)
        optional = {"neighbours", "stopped", "batches_s"}
        data = {
            name: data[name] for name in names if name not in optional or data[name] is not None
        }
        data |= data.pop("attempt_stats")
        return data

    def exit_code(self, contradictions: Sequence[str] = ()) -> int:
        """Return the exit code of a command that finishes with this run; 0 if the run is valid.

        Parameters
        ----------
        contradictions
            Differences between the files of the run directory and the driver's digests.
        """
        if self.corrupt_objects or self.violated_keys:
            return CORRUPT
        if self.withheld:
            return WITHHELD
        if contradictions:
            return ArchiveError.exit_code
        return 0 if self.ok == self.requested else INCOMPLETE


def summarize(run: AnyRun, *, with_warmup: bool = False, prices: object = None) -> Summary:
    """Return the totals of a run.

    Parameters
    ----------
    run
        A run, its name or its directory.
    with_warmup
        Whether to include the operations of the warm-up.
    prices
        Prices for the bill of a run on AWS Lambda; the default is the price list of sbench.

    Returns
    -------
    Summary
        Counts, bytes, rates and times, and any contradictions between them.

    Examples
    --------
    >>> summary = sbench.summarize(read)
    >>> summary.verified_bytes, summary.withheld
    (4194304, ())
    """
    run = as_run(run)
    if with_warmup:
        run = all_measured(run)
    offsets = worker_offsets(run)
    run = aligned(run, offsets)
    measured = measured_operations(run)
    good, counts = good_operations(run), Counter(run.functions["status"])
    attempts = attempt_stats(run, good)
    computed = throughput(run, good)
    withheld = violations(Facts(run=run, good=good, throughput=computed))
    rates, elapsed_s = function_spans(run).bytes_per_s, computed.figures["elapsed_s"]
    figures = (
        {**dict.fromkeys(computed.figures), "elapsed_s": elapsed_s}
        if withheld
        else computed.figures
    )
    times = latencies(run, good)
    reduced = Reduced(
        run=run,
        measured=measured,
        good=good,
        offsets=offsets,
        elapsed_s=None if withheld else elapsed_s,
        prices=prices,
    )
    return Summary(
        **_identity(run),
        **figures,
        **_operations(run, good),
        **_workers(run, good),
        **_times(run, good),
        ok=counts["ok"],
        failed=counts["failed"],
        lost=counts["lost"],
        duplicate=counts["duplicate"],
        unrecorded_launches=unrecorded_launches(run),
        ops_per_s=None if withheld else times.operations_per_s,
        per_function_bytes_per_s=None if withheld else percentiles(rates),
        attempt_stats=attempts,
        not_shown=not_shown(run, good, attempts.retried_bytes),
        clocks=clocks(offsets),
        missing_functions=missing_functions(
            run, good, rates, whole=figures["throughput_bytes_per_s"]
        ),
        withheld=withheld,
        latencies=times.without_rates() if withheld else times,
        neighbours=run.neighbours,
        stopped=run.stopped,
        parts={
            part.name: computed_part
            for part in parts_of(run.job.workload)
            if (computed_part := reduced.results_of(part)) is not None
        },
    )


def _identity(run: Run) -> dict[str, Any]:
    """Return the fields that identify the run, and its completeness."""
    job = run.job
    return {
        "run_id": run.run_id,
        "name": job.name,
        "argument": as_argument(run.path),
        "workload": job.workload,
        "store": _store(run),
        "client": job.load.library or job.target.client,
        "executor": job.executor,
        "polled": run.provenance.get("polled", False),
        "simulated": run.simulated,
        "requested": job.number,
        "planned_concurrency": job.max_concurrency,
        "object_bytes": job.size,
        "threads": job.load.threads,
        "idle_threads": job.idle_threads,
        "batches_s": job.batches_s,
        "suspended_s": sum(end - begin for begin, end in run.suspensions) / NS_PER_S or None,
        "ended": run.ended,
        "cleaned": run.cleaning_ns is not None,
        "skipped_lines": run.skipped_lines,
    }


def _operations(run: Run, good: Mask) -> dict[str, Any]:
    """Return the numbers of operations and bytes, and of corrupt bytes."""
    operations, measured = run.operations, measured_operations(run)
    of_counted = counted(run)[operations["function"]]
    warmup = of_counted & ~measured
    unknown = is_one_of(operations["kind"], READS) & (operations["size"] == ABSENT)
    return {
        "bytes": int(operations["bytes"][good].sum()),
        "verified_bytes": int(operations["verified_bytes"][good].sum()),
        "corrupt_objects": int((operations["bad_ranges"][of_counted] > 0).sum()),
        "bad_bytes": int(operations["bad_bytes"][of_counted].sum()),
        "bad_ranges": _bad_ranges(run),
        "unknown_objects": int((unknown & good).sum()),
        "operations": int(measured.sum()),
        "failed_operations": int((measured & ~good).sum()),
        "warmup_operations": int(warmup.sum()),
        "warmup_bytes": int(operations["bytes"][warmup].sum()),
    }


def _workers(run: Run, good: Mask) -> dict[str, Any]:
    """Return the fields about workers: number, resource usage and errors."""
    functions, counts = run.functions, counted(run)
    reported = counts & (functions["max_rss_bytes"] > 0)
    moved, cpu_s = int(run.operations["bytes"][good].sum()), measured_cpu_s(run)
    bad = is_one_of(functions["status"], ("failed", "lost"))
    return {
        "errors": dict(Counter(map(str, functions["error"][bad])).most_common()),
        "cold_starts": int((functions["cold_start"][counts] > 0).sum()),
        "workers": len(set(functions["worker_id"][reported])),
        "cpu_s_per_gib": None if cpu_s is None or not moved else cpu_s / (moved / GIB),
        "peak_rss_bytes": int(functions["max_rss_bytes"][reported].max())
        if reported.any()
        else None,
    }


def _times(run: Run, good: Mask) -> dict[str, Any]:
    """Return the durations of the run and the operations."""
    time, seen = elapsed(run), shown(run)

    def durations_s(begin: str, end: str) -> dict[str, float] | None:
        start, stop = run.operations[begin], run.operations[end]
        is_known = good & (start != ABSENT) & (stop != ABSENT)
        return percentiles((stop - start)[is_known] / NS_PER_S)

    begin_ns, end_ns = span(run) or (0, 0)
    return {
        "paused_s": (end_ns - begin_ns - time.between_ns(begin_ns, end_ns)) / NS_PER_S,
        "makespan_s": makespan_s(run.functions, time),
        "completion_s": completion_s(run, good, time),
        "ttfb_s": durations_s("start_ns", "first_byte_ns") if Shown.FIRST_BYTE in seen else None,
        "ack_s": durations_s("last_byte_sent_ns", "end_ns") if Shown.ACKNOWLEDGED in seen else None,
        "latency_s": durations_s("start_ns", "end_ns"),
        "latency_without_backoff_s": percentiles(latency_without_backoff_s(run, good)),
    }


def _store(run: Run) -> str:
    """Return a description of the storage location."""
    if run.simulated is not None:
        return f"none: simulated with {run.simulated}"
    target, folder = run.job.target, run.job.load.folder
    if folder is not None:
        return f"files in {folder}"
    name = "" if target.store is None else f" ({target.store} store)"
    return f"{target.bucket_name} at {', '.join((target.endpoint_url, *run.job.endpoints))}{name}"


def _bad_ranges(run: Run) -> tuple[Mapping[str, Any], ...]:
    bad = run.bad_ranges
    rows = np.flatnonzero(counted(run)[bad["function"]])[:MAX_REPORTED_RANGES]
    return tuple(
        {
            **{name: bad[name][row] for name in ("key", "found", "found_key", "found_key_hash")},
            **{name: int(bad[name][row]) for name in ("offset", "length", "bad_bytes")},
            **{
                name: None if bad[name][row] == ABSENT else int(bad[name][row])
                for name in ("found_generation", "found_offset")
            },
        }
        for row in rows
    )
