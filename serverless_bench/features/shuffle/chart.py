"""The chart of the phases of a shuffle over time."""

import numpy as np
from msgspec import structs

from serverless_bench.base.units import NS_PER_S, format_seconds
from serverless_bench.features.plot.charts import HEIGHT, Chart, unit_for
from serverless_bench.features.plot.run_charts import length_s, roles, stacked
from serverless_bench.features.shuffle.part import PART
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.timeline import Timeline, segments_of
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats


def phases_chart(run: Run, series: Timeline, summary: Summary) -> Chart | None:
    """Return the throughput of the mappers and of the reducers; None without phases.

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
    names, tints = roles(run)
    role = np.asarray(names)[run.functions["index"][run.operations["function"]]]
    grid = segments_of(aligned(run, worker_offsets(run)), series.segment_ns)
    factor, unit = unit_for(float(series.bytes_per_s.max()))
    rates: dict[str, Floats] = {}
    for name in tints:
        moved = structs.replace(grid, good=grid.good & (role == name)).moved()[0]
        rates[name] = moved.astype(np.float64) * (NS_PER_S / series.segment_ns / factor)
    ends = (f"{one.phase} until {format_seconds(one.end_s)}" for one in figures.phases)
    return Chart(
        title=", ".join(ends).capitalize(),
        says=f"Bytes that mappers wrote and reducers read in each"
        f" {format_seconds(series.segment_ns / NS_PER_S)}.",
        spec=stacked(rates, series.segment_ns, f"throughput ({unit})", [*tints.values()]),
        height=HEIGHT,
        end_s=length_s(series),
    )
