"""Measure what throughput many serverless functions really get from object storage.

This is the API for Python users: ``help(serverless_bench)`` lists it, and docs/reference.md shows
each name with an example::

    JobSpec, Target, Transfer, Load, ...          a job; checked on creation
    run_job, resume_job                           run a job                     Run
    RunProgress                                   watch it, or end it
    load_run                                      a saved run                   Run
    summarize, timeline                           totals, bytes over time       Summary, Timeline
    render                                        a summary as text, JSON or Markdown
    clean                                         delete the objects of a run   Cleaned

Features add others, such as forecasts and comparisons of runs: ``serverless_bench.__all__`` has
all names.

Data flows through the rooms (folders) in this order, and back in reverse::

    job         the request: a checked specification            JobSpec
    driver      one run from the user's side; it makes one value per function call
    executors   run the functions
    worker      code that runs in a function                    InvocationRecord
    workloads   operations to perform, with one of the clients
    payload     the bytes that are written, and verified
    rundir      a run on disk, crash-safe                       Run
    metrics     statistics of a run: pure, offline              Summary
    report      statistics to text

``stores`` has a store that starts on this machine, ``cli`` the commands, ``features`` everything
else, a folder each.

The public names are loaded on first use: a function that imports
``serverless_bench.worker.invocation`` must not pay for NumPy.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from serverless_bench.features import PUBLIC
from serverless_bench.version import __version__ as __version__

if TYPE_CHECKING:
    from serverless_bench.base.errors import SbenchError as SbenchError
    from serverless_bench.driver.clean import Cleaned as Cleaned
    from serverless_bench.driver.clean import clean as clean
    from serverless_bench.driver.run import CutShort as CutShort
    from serverless_bench.driver.run import resume_job as resume_job
    from serverless_bench.driver.run import run_job as run_job
    from serverless_bench.driver.target import embedded_target as embedded_target
    from serverless_bench.executors.base import RunProgress as RunProgress
    from serverless_bench.features import *  # noqa: F403 - what the features add
    from serverless_bench.job.spec import JobSpec as JobSpec
    from serverless_bench.job.target import Target as Target
    from serverless_bench.job.target import Transfer as Transfer
    from serverless_bench.job.workload import Load as Load
    from serverless_bench.metrics.summary import Summary as Summary
    from serverless_bench.metrics.summary import summarize as summarize
    from serverless_bench.metrics.timeline import Timeline as Timeline
    from serverless_bench.metrics.timeline import timeline as timeline
    from serverless_bench.report.render import render as render
    from serverless_bench.rundir.run import Run as Run

_PUBLIC = {
    "Cleaned": "driver.clean",
    "CutShort": "driver.run",
    "JobSpec": "job.spec",
    "Load": "job.workload",
    "Run": "rundir.run",
    "RunProgress": "executors.base",
    "SbenchError": "base.errors",
    "Summary": "metrics.summary",
    "Target": "job.target",
    "Timeline": "metrics.timeline",
    "Transfer": "job.target",
    "clean": "driver.clean",
    "embedded_target": "driver.target",
    "render": "report.render",
    "resume_job": "driver.run",
    "run_job": "driver.run",
    "summarize": "metrics.summary",
    "timeline": "metrics.timeline",
    **{name: f"features.{place}" for name, place in PUBLIC.items()},
}
_DISPLAYED = {"features.compare.run_comparison", "metrics.summary", "features.ab.turns"}
"""Modules whose results ``print`` and notebooks show in the form of the reporters."""

__all__ = [*sorted(_PUBLIC), "__version__"]  # noqa: PLE0604 - all strings


def __getattr__(name: str) -> object:
    room = _PUBLIC.get(name)
    if room is None:
        # With the name and the module, Python suggests a similar name.
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    if room in _DISPLAYED:
        # Reporters register the display of the analysis results.
        import_module(f"{__name__}.report.render")
    return getattr(import_module(f"{__name__}.{room}"), name)


def __dir__() -> Iterable[str]:
    return sorted(__all__)
