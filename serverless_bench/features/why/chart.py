"""The chart of a run in blocks: the elasticity of each change."""

from serverless_bench.features.plot.answer_charts import answer_chart
from serverless_bench.features.plot.charts import Chart
from serverless_bench.features.why.interventions import plan_of
from serverless_bench.features.why.result import Why, drawings
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.timeline import Timeline
from serverless_bench.rundir.run import Run, load_run


def elasticity_chart(run: Run, _series: Timeline, _summary: Summary) -> Chart | None:
    """Return the elasticity of each change of a run of ``sbench why``; None for other runs."""
    if (plan := plan_of(run.job)) is None:
        return None
    # The prefixes are known by the keys.
    answer = Why(run=run if "key" in run.operations else load_run(run.path), plan=plan)
    if not answer.numbers:
        return None
    return next((answer_chart(shown) for shown in drawings(answer) if shown.marks), None)
