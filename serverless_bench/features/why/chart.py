"""The chart of a run's blocks, by the change made in each."""

from typing import Final

from serverless_bench.base.units import NS_PER_S, format_seconds
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import Chart, colors, drawing, unit_for
from serverless_bench.features.plot.run_charts import FIRST_REQUEST, length_s, steps
from serverless_bench.features.why.blocks import Blocks
from serverless_bench.features.why.interventions import BASE, CHANGES, plan_of
from serverless_bench.metrics.timeline import Timeline
from serverless_bench.rundir.run import Run

_OF_CHANGE: Final = {
    "": "line",
    "thread": "green",
    "pause": "grey",
    "processor": "orange",
    "lock": "pink",
    "others": "blue",
    "bytes": "purple",
    "prefixes": "sky",
    "endpoints": "brown",
    "nothing": "soft",
}


def blocks_chart(run: Run, series: Timeline) -> Chart | None:
    """Return the throughput of each block of a run of ``sbench why``; None for other runs.

    Parameters
    ----------
    run
        A saved run.
    series
        Its timeline.
    """
    plan = plan_of(run.job)
    blocks = None if plan is None else Blocks(run=run, plan=plan)
    if blocks is None or not blocks.numbers:
        return None
    rates, length_ns = blocks.rates.sum(axis=1), blocks.plan.block_ns
    factor, unit = 1.0, "operations/s"
    if blocks.moves_bytes:
        factor, unit = unit_for(float(rates.max()))
    names = {BASE: "no change", **CHANGES}
    rows = [
        {"t": at, "u": at + length_ns / NS_PER_S, "what": names[change], "n": rate / factor}
        for number, change, rate in zip(blocks.numbers, blocks.changes, rates, strict=True)
        for at in [(number * length_ns - series.start_ns) / NS_PER_S]
    ]
    shown = [change for change in names if change in blocks.changes]
    tints = colors({names[change]: palette.color(_OF_CHANGE[change]) for change in shown})
    return Chart(
        title=f"Changes, {unit}",
        says=f"Throughput in each block of {format_seconds(length_ns / NS_PER_S)} without its first"
        f" {format_seconds(blocks.guard_s)}; the colour is the change made in it.",
        spec=drawing("stacked", rows, time=steps(FIRST_REQUEST), counts={}, colors=tints),
        height=130,
        end_s=length_s(series),
    )
