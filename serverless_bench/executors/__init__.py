"""The executors: a module and an entry here each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from serverless_bench.base.plugins import Registry
from serverless_bench.job.defaults import DEFAULT_EXECUTOR

if TYPE_CHECKING:
    # The help output needs only the names.
    from serverless_bench.executors.base import Executor, ExecutorInfo
    from serverless_bench.executors.base import ExecutorFactory as ExecutorFactory
    from serverless_bench.job.spec import JobSpec

EXECUTORS: Final = Registry["ExecutorFactory"](
    "executors",
    {
        "inline": "serverless_bench.executors.inline:InlineExecutor",
        "local": "serverless_bench.executors.local:LocalExecutor",
    },
)


def info_of(name: str) -> "ExecutorInfo":
    """Return the declaration of an executor, importing only its module.

    Raises
    ------
    PluginError
        If no such executor exists, or a library that it imports is not installed.
    """
    return EXECUTORS.load(name).info


def executors_where(declares: "Callable[[ExecutorInfo], bool]") -> list[str]:
    """Return the names of executors selected by their declaration, the default first.

    For messages only, because this imports all executors of sbench.
    """
    names = [name for name in EXECUTORS if declares(info_of(name))]
    return sorted(names, key=lambda name: name != DEFAULT_EXECUTOR)


def open_executor(job: "JobSpec") -> "Executor":
    """Return the executor of ``job``, importing only its module."""
    return EXECUTORS.load(job.executor)(job)
