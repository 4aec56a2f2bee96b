"""The cost of all runs of a study."""

from serverless_bench.features.studies.loading import load_study
from serverless_bench.features.studies.plan import Plan, dollars_text, planned_jobs
from serverless_bench.job.target import Target
from tests.house.members import uses


@uses("workload read")
def test_a_study_is_planned_with_all_its_runs() -> None:
    study = load_study("pywren-2016")
    plan = Plan(study=study, scale="paper", repeats=5)
    target = Target(bucket="planned")
    planned = [*planned_jobs(plan, lambda _: target)]
    # A warm-up run and five rounds; objects to read are written once.
    assert [(one.job.workload, one.runs) for one in planned] == [
        ("write", 6),
        ("write", 1),
        ("read", 5),
    ]
    assert len(planned[2].keys) == 1800
    assert "all rounds, pilots and preparations" in dollars_text(plan)
