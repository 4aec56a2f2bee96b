"""All jobs of an experiment, and what they cost together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from serverless_bench.aws.cost.forecast import VCPU_MIB
from serverless_bench.aws.cost.prices import format_money
from serverless_bench.driver.outlook import example_keys
from serverless_bench.driver.outlook import plan as plan_job
from serverless_bench.errors import SbenchError
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.studies.definition import Settings
from serverless_bench.studies.pilot import pilot_settings
from serverless_bench.studies.plan import Plan
from serverless_bench.studies.settings import merged

_ANYWHERE: Final = Target(bucket="planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job of an experiment, and how often it runs."""

    job: JobSpec
    keys: tuple[str, ...] = ()
    """Like those of the objects that it reads."""
    runs: int


def planned_jobs(plan: Plan, target_of: Callable[[Settings], Target]) -> Iterator[PlannedJob]:
    """Yield the jobs of all rounds, pilots and preparations; a run takes its longest.

    Parameters
    ----------
    plan
        Of the experiment.
    target_of
        Returns where the objects of a cell go, by its settings.
    """
    prepared: dict[str, tuple[str, ...]] = {}
    for number, cell in enumerate(plan.runnable()):
        target, written, keys = target_of(cell.settings), plan.prepared(cell), tuple[str, ...]()
        if written is not None:
            name = repr(sorted((n, str(v)) for n, v in written.items()))
            if name not in prepared:
                job = plan.job(written, target, name="prepare")
                prepared[name] = tuple(example_keys(job, ()))
                yield PlannedJob(job=job, runs=1)
            keys = prepared[name]
        length = {"duration_s": plan.most_s} if pilot_settings(cell.settings, plan.most_s) else {}
        settings = merged(cell.settings, length if plan.most_s else {})
        # A pilot of each cell, or one run to warm up.
        extra = 1 if plan.most_s or not number else 0
        job = plan.job(settings, target, name=cell.slug, keys=keys)
        yield PlannedJob(job=job, keys=keys, runs=plan.repeats + extra)


def dollars_text(plan: Plan) -> str:
    """Return in words what all jobs would cost on AWS Lambda, as ``sbench plan`` has it.

    Empty if nobody can know.
    """
    total, currency = 0.0, ""
    try:
        for planned in planned_jobs(plan, lambda _: _ANYWHERE):
            job = replace(planned.job, concurrency=planned.job.invocations)
            found = plan_job(job, planned.keys, memory_mib=job.memory_mib or VCPU_MIB)
            if found.dollars is None:
                return ""
            total, currency = total + planned.runs * found.dollars.total, found.prices.currency
    except SbenchError:
        return ""
    if not total:
        return ""
    return (
        f"with functions on AWS Lambda about {format_money(total, currency)}: all rounds, pilots"
        " and preparations"
    )
