"""Where functions run: one file and one line here each."""

from collections.abc import Mapping
from typing import Final, cast

from serverless_bench import plugins
from serverless_bench.executors.base import Executor, ExecutorFactory
from serverless_bench.job.spec import JobSpec

EXECUTORS: Final[Mapping[str, str]] = {
    "inline": "serverless_bench.executors.inline:InlineExecutor",
    # No module can be called lambda.
    "lambda": "serverless_bench.executors.aws_lambda:LambdaExecutor",
    "lithops": "serverless_bench.executors.lithops:LithopsExecutor",
    "local": "serverless_bench.executors.local:LocalExecutor",
}


def open_executor(job: JobSpec) -> Executor:
    """Return the executor that ``job`` names, importing only that one."""
    factory = cast("ExecutorFactory", plugins.load("executors", EXECUTORS, job.executor))
    return factory(job)
