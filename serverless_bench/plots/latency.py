"""How long operations took, over time and by kind."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from serverless_bench.archive import Run
from serverless_bench.latencies import Latencies, latencies
from serverless_bench.offsets import aligned, worker_offsets
from serverless_bench.series import good_operations

_COLORS: Final[Mapping[str, str]] = {
    "put": "tab:green",
    "get": "tab:blue",
    "get_range": "tab:cyan",
    "head": "tab:orange",
    "list": "tab:purple",
    "delete": "tab:red",
    "delete_many": "tab:pink",
    "copy": "tab:olive",
    "write_array": "tab:green",
    "append_array": "tab:olive",
    "read_array": "tab:blue",
}


def draw_latency(run: Run, axes: Axes) -> None:
    """Draw p50 (solid) and p99 (dotted) of each kind of operation in each segment of time.

    In an open loop they are of the response time, which counts from the intended start.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw; its vertical axis becomes logarithmic.
    """
    found = latencies_of(run)
    time = "response time" if found.open_loop else "latency"
    axes.set_xlabel("seconds since the first operation was due")
    axes.set_ylabel("seconds")
    axes.set_title(f"{run.job.workload}: {time}, p50 and p99")
    if found.segment_s is None:
        return
    axes.set_yscale("log")
    for one in found.over_time:
        at = (np.arange(len(one.count)) + 0.5) * found.segment_s
        color = _COLORS.get(one.kind, "tab:gray")
        for values, style, label in ((one.p50_s, "-", one.kind), (one.p99_s, ":", None)):
            # A latency of nothing, on a clock that is coarse, has no logarithm.
            shown = np.array([value or np.nan for value in values], dtype=np.float64)
            axes.plot(at, shown, style, color=color, label=label, marker=".", markersize=3)
    # Beside the axes: a stall may be anywhere in them.
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def latencies_of(run: Run) -> Latencies:
    """Return how long the operations of a run took, its clocks corrected."""
    run = aligned(run, worker_offsets(run))
    return latencies(run, good_operations(run))
