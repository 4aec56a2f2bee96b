"""Where functions run: one file and one line here each."""

from typing import TYPE_CHECKING, Final

from serverless_bench.plugins import Registry

if TYPE_CHECKING:
    # Help asks for the names alone.
    from serverless_bench.executors.base import Executor
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


def open_executor(job: "JobSpec") -> "Executor":
    """Return the executor that ``job`` names, importing only that one."""
    return EXECUTORS.load(job.executor)(job)
