"""Jobs that call a function."""

from collections.abc import Callable
from typing import Any

from serverless_bench.base.plugins import TOOLS
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import OWN_FUNCTION, Load


def function_job(function: Callable[[Any], object], **settings: Any) -> JobSpec:
    """Return a job that calls a function with the fields of ``JobSpec`` but ``workload``."""
    load = TOOLS.load("function-load")(function, settings.pop("load", Load()))
    return JobSpec(workload=OWN_FUNCTION, load=load, **settings)
