"""Compute the time that a run's slots were busy or idle, by reason. Pure functions.

A slot has capacity for a function; a run has as many slots as its planned concurrency. The records
contain the times at which functions were submitted, started, ended and were collected. Slots
without a running function are idle at a given time, for the first matching reason:

delivery
    A function has ended, and its record has not been collected.
cold start, launch
    A function has been submitted, and is loading its code, or has not started to.
unfilled
    Functions remain, and the driver has not submitted them.
tail
    No functions remain, but some are still running.

A function that waits in a queue while all slots are busy does not cause idle time.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from serverless_bench.metrics.throughput import elapsed
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Ints, distinct

SLOT_STATES: Final = ("work", "lost", "delivery", "cold_start", "launch", "unfilled", "tail")


def slot_shares(run: Run) -> Mapping[str, float] | None:
    """Return the shares of a run's slot time, from the first submission to the last collection.

    Parameters
    ----------
    run
        A saved run with worker timestamps on the driver's clock.

    Returns
    -------
    Mapping or None
        Shares of the slots' time by ``SLOT_STATES``; they add up to 1. None if the submission
        times are unknown.
    """
    table = run.functions
    submitted, collected = table["submitted_ns"], table["collected_ns"]
    is_submitted = submitted != ABSENT
    if not is_submitted.any():
        return None
    began = is_submitted & (table["start_ns"] != ABSENT)
    lost = is_submitted & ~began
    start = np.maximum(table["start_ns"], submitted)[began]
    end = np.maximum(table["end_ns"][began], start)
    loading = np.maximum(start - np.maximum(table["import_ns"][began], 0), submitted[began])
    instants = (submitted[is_submitted], collected[is_submitted], start, end, loading)
    time = elapsed(run)
    edges = distinct(np.concatenate((*instants, time.begins, time.ends)))
    within = (edges >= submitted[is_submitted].min()) & (edges <= collected[is_submitted].max())
    edges = edges[within]
    length = time.between_each_ns(edges[:-1], edges[1:])
    idle = np.full(len(length), run.job.at_once)
    first_launch = submitted[is_submitted & (table["launch"] == 0)]
    remaining = run.job.number - _count(edges, first_launch)
    demand = {
        "work": at_once(edges, start, end),
        "lost": at_once(edges, submitted[lost], collected[lost]),
        "delivery": at_once(edges, end, np.maximum(collected[began], end)),
        "cold_start": at_once(edges, loading, start),
        "launch": at_once(edges, submitted[began], loading),
        "unfilled": np.maximum(remaining, 0),
        "tail": idle,
    }
    shares = {}
    for state, wanted in demand.items():
        taken = np.minimum(idle, wanted)
        idle = idle - taken
        shares[state] = float(taken @ length)
    total = sum(shares.values())
    return {state: share / total for state, share in shares.items()} if total else None


def at_once(edges: Ints, begin: Ints, end: Ints) -> Ints:
    """Return the number of intervals that cover each segment between edges."""
    return _count(edges, begin) - _count(edges, end)


def _count(edges: Ints, instants: Ints) -> Ints:
    """Return the number of timestamps before each segment between edges."""
    return np.searchsorted(np.sort(instants), edges[:-1], side="right").astype(np.int64)
