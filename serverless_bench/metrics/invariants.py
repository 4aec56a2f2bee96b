"""Check invariants that hold in any correct report. Pure functions.

Each check recomputes a value in a different way, or compares it with physical limits. If a check
fails, the report withholds its headline and gives the reason. Such checks would have prevented
published results that lose up to 12 % of their bytes or 1.5 % of their functions, or that exceed
the capacity of their network by a factor of four.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S, format_count, format_rate
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.policy import policies_of
from serverless_bench.metrics.attempt_stats import SENT
from serverless_bench.metrics.clock_offsets import stepped
from serverless_bench.metrics.throughput import Throughput, whole_and_peak
from serverless_bench.metrics.timeline import counted
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Mask, is_one_of, is_text, sum_by

_TOLERANCE: Final = 0.02
"""Uncertainty of a network's nominal rate and of window edges."""
_WHOLE: Final = frozenset({"get", "put"})
"""Kinds that transfer exactly the bytes of their object."""
_RANGES: Final = frozenset({"get_range"})
_RECEIVED: Final = frozenset({"get", "get_range", "read_array", "scan"})


class Facts(Struct, frozen=True, kw_only=True):
    """Input of the checks."""

    run: Run
    good: Mask
    """Mask of successful operations that count."""
    throughput: Throughput


Invariant = Callable[[Facts], Iterator[str]]
"""A check that yields a sentence for each contradiction."""


def violations(facts: Facts) -> tuple[str, ...]:
    """Return the reasons for withholding the headline; usually empty."""
    return tuple(reason for invariant in INVARIANTS.values() for reason in invariant(facts))


def _functions_add_up(facts: Facts) -> Iterator[str]:
    status, requested = facts.run.functions["status"], facts.run.job.number
    accounted = int(is_one_of(status, ("ok", "failed", "lost")).sum())
    if accounted != requested:
        yield f"{accounted} functions are ok, failed or lost, and {requested} were requested"


def _no_byte_is_missing(facts: Facts) -> Iterator[str]:
    moved = int(facts.run.operations["bytes"][facts.good].sum())
    if facts.throughput.timeline_bytes != moved:
        yield (
            f"the timeline adds up to {facts.throughput.timeline_bytes} bytes,"
            f" the operations to {moved}"
        )


def _objects_are_whole(facts: Facts) -> Iterator[str]:
    operations = facts.run.operations
    is_known = facts.good & (operations["size"] != ABSENT)
    moved, size = operations["bytes"], operations["size"]
    count = int((moved != size)[is_known & is_one_of(operations["kind"], _WHOLE)].sum())
    if count:
        yield f"{count} operations are called done and moved fewer or more bytes than their object"
    beyond = moved + operations["offset"] > size
    count = int(beyond[is_known & is_one_of(operations["kind"], _RANGES)].sum())
    if count:
        yield f"{count} ranges are called done and go on after the end of their object"


def _verified_is_moved(facts: Facts) -> Iterator[str]:
    operations = facts.run.operations
    if (operations["verified_bytes"] > operations["bytes"])[facts.good].any():
        yield "more bytes were verified than moved"


def _attempts_carry_the_bytes(facts: Facts) -> Iterator[str]:
    run, operations = facts.run, facts.run.operations
    if run.provenance.get("client", {}).get("attempts") != "exact":
        return
    counts = counted(run)
    succeeded = is_text(run.attempts["error"], None) & counts[run.attempts["function"]]
    carried = int(run.attempts["bytes"][succeeded].sum())
    # The libraries of arrays make requests of their own, so arrays are excluded.
    claimed = counts[operations["function"]] & is_one_of(operations["kind"], _WHOLE | _RANGES)
    moved = int(operations["bytes"][claimed].sum())
    if carried < moved:
        yield f"the attempts carried {carried} bytes, the operations claim {moved}"


def _time_runs_forward(facts: Facts) -> Iterator[str]:
    operations = facts.run.operations
    start, end = operations["start_ns"], operations["end_ns"]
    backward = int((end < start)[facts.good].sum())
    for name in ("first_byte_ns", "last_byte_sent_ns"):
        has_value = facts.good & (operations[name] != ABSENT)
        outside = (operations[name] < start) | (operations[name] > end)
        backward += int(outside[has_value].sum())
    if backward:
        yield f"{backward} operations have a timestamp before their start or after their end"
    asleep = int(stepped(facts.run.functions).sum()) if facts.run.suspensions else 0
    if asleep:
        sleepers = format_count(asleep, "function")
        yield f"{sleepers} suspended with the driver's machine, or with a clock that was set"


def _operations_lie_within_their_function(facts: Facts) -> Iterator[str]:
    run, operations = facts.run, facts.run.operations
    start, end = (run.functions[name][operations["function"]] for name in ("start_ns", "end_ns"))
    outside = (operations["start_ns"] < start) | (operations["end_ns"] > end)
    if count := int(outside[facts.good].sum()):
        yield f"{count} operations begin before their function began or end after it ended"
    stepped_ns = sum_by(run.operation_rows(run.steps), run.steps["step_ns"], len(start))
    longer = stepped_ns > operations["end_ns"] - operations["start_ns"]
    if count := int(longer[facts.good].sum()):
        yield f"the steps of {count} operations take longer than the operations"


def _the_plan_was_done(facts: Facts) -> Iterator[str]:
    """Check that functions that are ok did exactly the planned operations."""
    functions = facts.run.functions
    others = is_text(functions["status"], "ok") & ~is_text(functions["deviation"], None)
    if others.any():
        first = np.flatnonzero(others)[0]
        yield (
            f"{format_count(int(others.sum()), 'function')} called ok deviate from their plan:"
            f" function {functions['index'][first]} {functions['deviation'][first]}"
        )


def _no_more_at_once_than_planned(facts: Facts) -> Iterator[str]:
    """Check Little's law: operations in flight are throughput times latency."""
    job = facts.run.job
    if isinstance(job.declared, RunsCode):
        return  # a user's function may start any number of threads
    threads = job.load.threads
    threads += sum(policy.extra_threads(threads) for policy in policies_of(job))
    planned = job.max_concurrency * threads
    in_flight = facts.throughput.mean_in_flight
    if in_flight > planned * (1 + _TOLERANCE):
        yield (
            f"throughput times latency is {in_flight:.1f} operations in flight (Little's law),"
            f" and only {planned} {'threads' if threads > 1 else 'functions'}"
            " were at work"
        )


def _the_network_carries_it(facts: Facts) -> Iterator[str]:
    """Check that the traffic in each direction does not exceed the network's capacity."""
    capacity = facts.run.job.network_rate
    figures = facts.throughput.figures
    together = (figures["throughput_bytes_per_s"], figures["peak_1s_bytes_per_s"])
    # There is no peak for writes without acknowledged progress; concurrent reads may have one.
    if capacity is None or not facts.good.any():
        return
    if None not in together and max(rate or 0.0 for rate in together) <= capacity:
        return
    kinds = facts.run.operations["kind"]
    rates = {
        "sent": (whole_and_peak(facts.run, is_one_of(kinds, SENT)), capacity),
        "received": (whole_and_peak(facts.run, is_one_of(kinds, _RECEIVED)), capacity),
        # The direction of a user's function is unknown.
        "both ways": (together, 2 * capacity),
    }
    for way, (rates_of_way, most) in rates.items():
        for name, rate in zip(("whole", "peak"), rates_of_way, strict=True):
            if rate is not None and rate > most * (1 + _TOLERANCE):
                yield (
                    f"{format_rate(rate)} ({name}, {way}) exceeds a network of"
                    f" {format_rate(capacity)}: the bytes or the times are not what they say"
                )
                return


def _durations_are_possible(facts: Facts) -> Iterator[str]:
    """Check that no object was transferred faster than memory allows."""
    operations = facts.run.operations
    moved = facts.good & (operations["bytes"] > 0)
    took = (operations["end_ns"] - operations["start_ns"])[moved]
    rates = operations["bytes"][moved] / (np.maximum(took, 1) / NS_PER_S)
    fastest = float(rates.max(initial=0))
    if fastest > _MEMORY_BYTES_PER_S:
        yield f"an object moved at {format_rate(fastest)}, faster than memory"


_MEMORY_BYTES_PER_S: Final = 200e9
"""Generous limit, above the single-threaded memory bandwidth of a server socket in 2026."""

INVARIANTS: Final[Mapping[str, Invariant]] = {
    "functions add up": _functions_add_up,
    "no byte is missing": _no_byte_is_missing,
    "objects are whole": _objects_are_whole,
    "verified bytes were moved": _verified_is_moved,
    "attempts carry the bytes": _attempts_carry_the_bytes,
    "time runs forward": _time_runs_forward,
    "operations within their function": _operations_lie_within_their_function,
    "the plan was done": _the_plan_was_done,
    "Little's law": _no_more_at_once_than_planned,
    "the network carries it": _the_network_carries_it,
    "durations are possible": _durations_are_possible,
}
"""All checks by the name that `sbench check` prints."""
