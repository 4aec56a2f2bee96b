"""What became of the events of a run whose functions are remote.

Which were refused, which came twice or never, what was launched again, how long a cold
environment took to its first byte, and how long a record lay before the driver had it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from serverless_bench.analysis.visibility import shown
from serverless_bench.rundir.record import Shown
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    READS,
    Floats,
    Mask,
    is_one_of,
    is_text,
    parts,
    percentiles,
)
from serverless_bench.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaunchWave:
    """What was launched again at one time."""

    number: int
    count: int
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """Totals over all events of a run; analysis/figures.toml defines each."""

    received: int
    refusals: int
    never_began: int
    waves: tuple[RelaunchWave, ...]
    requests_per_function: float | None
    lag_s: Mapping[str, float] | None
    import_s: Mapping[str, float] | None
    cold_start_s: Mapping[str, float] | None


def deliveries(run: Run) -> Deliveries | None:
    """Return what became of a run's events; None if it had none."""
    functions = run.functions
    recorded = ~is_text(functions["delivery"], None)
    refusals = int(np.maximum(functions["refusals"], 0).sum())
    if not (recorded.any() or refusals or run.waves):
        return None
    there = is_one_of(functions["status"], ("ok", "failed", "duplicate"))
    delivered = recorded & (functions["duplicate"] != 1)
    born = there & (functions["born_ns"] > 0)
    # Those that looked for records, and not those that took attempts back.
    looks = sum((run.requests or {}).get(kind, 0) for kind in ("get", "list"))
    return Deliveries(
        received=int(there.sum()),
        refusals=refusals,
        never_began=int((functions["never_began"] == 1).sum()),
        waves=tuple(
            RelaunchWave(
                number=wave["number"],
                count=wave["count"],
                after_s=(wave["created_ns"] - run.created_ns) / NS_PER_S,
            )
            for wave in run.waves
        ),
        requests_per_function=looks / run.job.invocations if run.requests else None,
        lag_s=percentiles((functions["collected_ns"] - functions["end_ns"])[delivered] / NS_PER_S),
        import_s=percentiles(functions["import_ns"][born] / NS_PER_S),
        cold_start_s=percentiles(_first_byte_s(run, born)),
    )


def _first_byte_s(run: Run, born: Mask) -> Floats:
    """Return how long each function of ``born`` took from its birth to its first byte.

    For a write that is when its first request has a connection: the head goes out then. Left out
    are those whose client does not show it.
    """
    operations = run.operations
    seen, is_read = shown(run), is_one_of(operations["kind"], READS)
    has_first_byte = (operations["first_byte_ns"] != ABSENT) & (Shown.FIRST_BYTE in seen)
    is_seen = np.where(is_read, has_first_byte, Shown.CONNECTION in seen)
    first = np.flatnonzero((operations["index"] == 0) & born[operations["function"]] & is_seen)
    reached = operations["first_byte_ns"][first].copy()
    # The first step of a write without bytes is its wait for the connection.
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
