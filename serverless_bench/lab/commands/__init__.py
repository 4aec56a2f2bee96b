"""Help line and module of each command of the lab."""

from typing import Final

COMMANDS: Final = {
    "serve": (
        "Serve S3 without keeping data, with faults and limits on request.",
        "serverless_bench.lab.commands.serve:command",
    ),
    "lambda-host": (
        "Serve AWS Lambda's Invoke API here, with each function in a process.",
        "serverless_bench.lab.commands.lambda_host:command",
    ),
    "localstack": (
        "Run LocalStack, with functions as processes, to try a stack here.",
        "serverless_bench.lab.commands.localstack:command",
    ),
}
