"""The chart of conditional writes over time."""

import numpy as np

from serverless_bench.base.units import NS_PER_S, format_number, format_seconds
from serverless_bench.features.conditional.part import COMMITS, PART
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import HEIGHT, Chart
from serverless_bench.features.plot.run_charts import length_s, stacked
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.timeline import Timeline, good_operations, measured_operations
from serverless_bench.rundir.rows import Act, Ending
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats, Ints, is_one_of, is_text


def commits_chart(run: Run, series: Timeline, summary: Summary) -> Chart | None:
    """Return commits and refused writes per second; None without contention.

    Parameters
    ----------
    run
        The run.
    series
        Its timeline.
    summary
        Its totals.
    """
    figures = PART.results_in(summary)
    if figures is None:
        return None
    run = aligned(run, worker_offsets(run))
    operations, row = run.operations, run.operation_rows(run.accesses)
    tries = is_one_of(operations["kind"], COMMITS)
    writes = is_text(run.accesses["act"], Act.WRITE) & (measured_operations(run) & tries)[row]
    refused = writes & is_one_of(run.accesses["ending"], (Ending.REFUSED, Ending.CONFLICT))
    committed = good_operations(run) & tries & (operations["count"] > 0)

    def per_s(rows: Ints) -> Floats:
        at = (operations["end_ns"][rows] - series.start_ns) // series.segment_ns
        last = len(series.segment_bytes) - 1
        counts = np.bincount(np.clip(at, 0, last), minlength=last + 1)
        return np.asarray(counts * (NS_PER_S / series.segment_ns), dtype=np.float64)

    rate, times = figures.commits_per_s, figures.commit_s
    title = "Commits" if rate is None else f"{format_number(rate)} commits/s"
    return Chart(
        title=title if times is None else f"{title}, p99 {format_seconds(times['p99'])}",
        says="Operations that committed, and writes that were refused because another write came"
        f" first, in each {format_seconds(series.segment_ns / NS_PER_S)} in which the operation"
        " ended.",
        spec=stacked(
            {"commits": per_s(np.flatnonzero(committed)), "refused writes": per_s(row[refused])},
            series.segment_ns,
            "writes/s",
            [palette.color("green"), palette.color("orange")],
        ),
        height=HEIGHT,
        end_s=length_s(series),
    )
