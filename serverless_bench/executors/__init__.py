"""Where functions run: one file and one line here each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.plugins import Registry

if TYPE_CHECKING:
    # Help asks for the names alone.
    from serverless_bench.executors.base import Executor, ExecutorInfo
    from serverless_bench.executors.base import ExecutorFactory as ExecutorFactory
    from serverless_bench.job.spec import JobSpec

EXECUTORS: Final = Registry["ExecutorFactory"](
    "executors",
    {
        "dask": "serverless_bench.executors.dask:DaskExecutor",
        "inline": "serverless_bench.executors.inline:InlineExecutor",
        # No module can be called lambda.
        "lambda": "serverless_bench.executors.aws_lambda:LambdaExecutor",
        "lithops": "serverless_bench.executors.lithops:LithopsExecutor",
        "local": "serverless_bench.executors.local:LocalExecutor",
        "workers": "serverless_bench.executors.workers:WorkersExecutor",
    },
)


def info_of(name: str) -> "ExecutorInfo":
    """Return the declaration of an executor, importing only that one.

    Raises
    ------
    PluginError
        If nobody has it, or a library that it imports is not installed.
    """
    return EXECUTORS.load(name).info


def executors_where(declares: "Callable[[ExecutorInfo], bool]") -> list[str]:
    """Return the names of executors by their declaration, the default first.

    For messages, because this imports all of those that come with sbench.
    """
    names = [name for name in EXECUTORS if declares(info_of(name))]
    return sorted(names, key=lambda name: name != DEFAULT_EXECUTOR)


def open_executor(job: "JobSpec") -> "Executor":
    """Return the executor that ``job`` names, importing only that one."""
    return EXECUTORS.load(job.executor)(job)
