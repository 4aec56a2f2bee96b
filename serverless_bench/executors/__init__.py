"""Where functions run: one file and one line here each."""

from typing import Final

from serverless_bench.executors.base import Executor, ExecutorFactory
from serverless_bench.job.spec import JobSpec
from serverless_bench.plugins import Registry

EXECUTORS: Final = Registry[ExecutorFactory](
    "executors",
    {
        "inline": "serverless_bench.executors.inline:InlineExecutor",
        # No module can be called lambda.
        "lambda": "serverless_bench.executors.aws_lambda:LambdaExecutor",
        "lithops": "serverless_bench.executors.lithops:LithopsExecutor",
        "local": "serverless_bench.executors.local:LocalExecutor",
    },
)


def open_executor(job: JobSpec) -> Executor:
    """Return the executor that ``job`` names, importing only that one."""
    return EXECUTORS.load(job.executor)(job)
