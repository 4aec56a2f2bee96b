"""Draw the blocks of runs of ``sbench why`` with known causes, one below the other.

python -m docs.make_why CAUSE=RUN ...
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from serverless_bench.features.plot.charts import Spec
from serverless_bench.features.plot.picture import column, panel
from serverless_bench.features.why.chart import blocks_chart
from serverless_bench.features.why.interventions import plan_of
from serverless_bench.metrics.timeline import timeline
from serverless_bench.rundir.run import load_run

PICTURE: Final = Path(__file__).parents[1] / "serverless_bench" / "features" / "why" / "why.png"
_BLOCKS: Final = 80
"""Blocks that are drawn; all of them would be too narrow."""


def main(*runs: str) -> None:
    """Draw the first blocks of each run, with a legend where there are other changes."""
    panels, shown = list[Spec](), set[str]()
    for cause, _, directory in (text.rpartition("=") for text in runs):
        run = load_run(directory)
        chart, plan = blocks_chart(run, timeline(run)), plan_of(run.job)
        if chart is None or plan is None:
            raise ValueError(f"{directory} is no run in blocks")
        chart = replace(chart, end_s=_BLOCKS * plan.block_s, says="", height=80)
        drawn = panel(chart, cause)
        if shown >= {*plan.changes}:
            drawn["encoding"]["color"]["legend"] = None
        shown |= {*plan.changes}
        drawn["encoding"]["x"]["title"] = None
        panels.append(drawn)
    column(panels, "").save(PICTURE)


if __name__ == "__main__":
    main(*sys.argv[1:])
