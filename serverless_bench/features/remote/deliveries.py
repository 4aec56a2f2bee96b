"""Totals over the events of remote functions.

Events may be rejected, duplicated, lost or relaunched. A cold environment needs time until its
first byte, and a record waits until the driver collects it.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.metrics.attempt_stats import shown
from serverless_bench.metrics.part import Part, Position, Reduced, Rows
from serverless_bench.metrics.summary import Summary
from serverless_bench.rundir.record import Shown
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    READS,
    Floats,
    Mask,
    Percentiles,
    is_one_of,
    is_text,
    parts,
    percentiles,
)


class Relaunch(Struct, frozen=True, kw_only=True):
    """Functions relaunched at the same time."""

    number: int
    count: int
    after_s: float


class Deliveries(Struct, frozen=True, kw_only=True):
    """Totals over all events of a run; figures.toml defines each field."""

    received: int
    refusals: int
    not_started: int
    relaunches: tuple[Relaunch, ...]
    requests_per_function: float | None
    lag_s: Percentiles | None
    import_s: Percentiles | None
    cold_start_s: Percentiles | None


def deliveries(run: Run) -> Deliveries | None:
    """Return the totals over a run's events; None without events."""
    functions = run.functions
    recorded = ~is_text(functions["delivery"], None)
    refusals = int(np.maximum(functions["refusals"], 0).sum())
    if not (recorded.any() or refusals or run.waves):
        return None
    has_returned = is_one_of(functions["status"], ("ok", "failed", "duplicate"))
    delivered = recorded & (functions["duplicate"] != 1)
    born = has_returned & (functions["born_ns"] > 0)
    # Requests that looked for records, without requests that cancelled attempts.
    looks = sum((run.requests or {}).get(kind, 0) for kind in ("get", "list"))
    return Deliveries(
        received=int(has_returned.sum()),
        refusals=refusals,
        not_started=int((functions["not_started"] == 1).sum()),
        relaunches=tuple(
            Relaunch(
                number=wave.number,
                count=wave.count,
                after_s=(wave.created_ns - run.created_ns) / NS_PER_S,
            )
            for wave in run.waves
        ),
        requests_per_function=looks / run.job.number if run.requests else None,
        lag_s=percentiles((functions["collected_ns"] - functions["end_ns"])[delivered] / NS_PER_S),
        import_s=percentiles(functions["import_ns"][born] / NS_PER_S),
        cold_start_s=percentiles(_first_byte_s(run, born)),
    )


def _first_byte_s(run: Run, born: Mask) -> Floats:
    """Return the time from the start of each process in ``born`` to its first byte.

    For a write, this is the time at which its first request has a connection and sends its headers.
    Functions are excluded if their client does not expose it.
    """
    operations = run.operations
    seen, is_read = shown(run), is_one_of(operations["kind"], READS)
    has_first_byte = (operations["first_byte_ns"] != ABSENT) & (Shown.FIRST_BYTE in seen)
    is_seen = np.where(is_read, has_first_byte, Shown.CONNECTION in seen)
    first = np.flatnonzero((operations["index"] == 0) & born[operations["function"]] & is_seen)
    reached = operations["first_byte_ns"][first].copy()
    # The first step of a write without bytes is the wait for the connection.
    waited = np.zeros(len(born), dtype=np.int64)
    for part in parts(run.steps):
        function, moved = part["function"], part["step_bytes"]
        is_first = (part["operation"] == 0) & (np.diff(function, prepend=-1) != 0)
        silent = is_first & (moved == 0)
        waited[function[silent]] = part["step_ns"][silent]
    owner = operations["function"][first]
    is_write = ~is_read[first]
    reached[is_write] = (operations["start_ns"][first] + waited[owner])[is_write]
    seconds: Floats = (reached - run.functions["born_ns"][owner]) / NS_PER_S
    return seconds


class _DeliveriesPart(Part[Deliveries]):
    name = "deliveries"
    after = "bad_ranges"
    position = Position.WORKERS

    def compute(self, reduced: Reduced) -> Deliveries | None:
        """Return the totals over the events."""
        return deliveries(reduced.run)

    def rows(self, figures: Deliveries, summary: Summary) -> Rows:
        """Yield numbers of events, relaunches, and the times of records and environments."""
        # Reporters are not loaded to compute results.
        from serverless_bench.report.base import percentiles_text

        events = (
            f"{format_count(figures.received, 'record')} received,"
            f" {figures.refusals} {'launch' if figures.refusals == 1 else 'launches'} refused,"
            f" {figures.not_started} cancelled"
        )
        yield "events", events
        for wave in figures.relaunches:
            count, after = format_count(wave.count, "function"), format_seconds(wave.after_s)
            yield f"relaunch {wave.number}", f"{count} relaunched after {after}"
        if figures.lag_s:
            looks = figures.requests_per_function
            suffix = "" if looks is None else f", {looks:.2f} requests each"
            yield "records arrived after", percentiles_text(figures.lag_s, format_seconds) + suffix
        if figures.import_s:
            yield "cold start, import", percentiles_text(figures.import_s, format_seconds)
            yield "to the first byte", percentiles_text(figures.cold_start_s, format_seconds)


PART: Final = _DeliveriesPart()
