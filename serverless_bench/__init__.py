"""Measure what throughput many serverless functions really get from object storage.

Data flows in one direction, through files that are named after the steps::

    spec        what the user asks for            JobSpec
    plan        one value per function call       InvocationSpec
    fanout      every call, through an executor   Outcome
    body        runs inside the function          InvocationRecord
    work        its threads, and when each operation begins
    measure     one operation: its time, its attempts, its bytes
    archive     a run on disk, crash-safe         Run
    offsets     how wrong the workers' clocks are
    series      a run to bytes over time          Timeline
    windows     its best, its steady, its whole throughput
    traffic     its attempts: offered load, throttles, waits
    latencies   how long operations took, in histograms that can be added up
    bound       what bounded each function
    checks      what cannot be
    cost        what AWS bills for it
    reduce      all of this to totals             Summary
    reporters   totals to text                    plots draw them and the timeline
    compare     many runs to a verdict            scaling to a law, stability to warnings

Folders hold what you can add, one file each: ``clients`` (the libraries under test),
``workloads`` (what one function does), ``executors`` (where functions run), ``stores``
(something to run against), ``arrays`` (array libraries), ``experiments`` (published studies),
``reporters``, and ``importers``, ``exporters`` and ``converters`` (other tools' results in,
ours out, and their configurations in).

The public names below load what they need when they are first used: a function that
imports ``serverless_bench.worker.invocation`` must not pay for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serverless_bench.analysis.summary import Summary as Summary
    from serverless_bench.analysis.summary import summarize as summarize
    from serverless_bench.analysis.timeline import Timeline as Timeline
    from serverless_bench.analysis.timeline import timeline as timeline
    from serverless_bench.driver.run import resume_job as resume_job
    from serverless_bench.driver.run import run_job as run_job
    from serverless_bench.driver.target import embedded_target as embedded_target
    from serverless_bench.errors import SbenchError as SbenchError
    from serverless_bench.job.spec import ArraySpec as ArraySpec
    from serverless_bench.job.spec import JobSpec as JobSpec
    from serverless_bench.job.spec import Load as Load
    from serverless_bench.job.spec import Target as Target
    from serverless_bench.job.spec import Transfer as Transfer
    from serverless_bench.rundir.run import Run as Run
    from serverless_bench.rundir.run import load_run as load_run
    from serverless_bench.worker.context import FunctionContext as FunctionContext

__version__ = "0.1.0"

_PUBLIC = {
    "ArraySpec": "job.spec",
    "JobSpec": "job.spec",
    "Load": "job.spec",
    "Run": "rundir.run",
    "SbenchError": "errors",
    "Summary": "analysis.summary",
    "Target": "job.spec",
    "Timeline": "analysis.timeline",
    "FunctionContext": "worker.context",
    "Transfer": "job.spec",
    "embedded_target": "driver.target",
    "load_run": "rundir.run",
    "resume_job": "driver.run",
    "run_job": "driver.run",
    "summarize": "analysis.summary",
    "timeline": "analysis.timeline",
}

__all__ = [*sorted(_PUBLIC), "__version__"]  # noqa: PLE0604 - all strings


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
