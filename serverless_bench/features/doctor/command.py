"""``sbench doctor``."""

from typing import Any

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.of_jobs import executor_type, settings
from serverless_bench.cli.flags.options import DURATION, choose_format, option
from serverless_bench.cli.output.terminal import ExitCode, say_json, sections
from serverless_bench.executors import executors_where, info_of
from serverless_bench.job.endpoint import parse_endpoint


@sections({"Workload": "run-duration"}, last={"Checks": "write-test"})
@click.command("doctor")
@settings(
    *("stack", "bucket", "endpoint_url", "function", "region", "sse", "probe"),
    *("scheduler", "slots"),
    stack="Stack from `sam deploy` to check.",
    bucket="Bucket to check.",
    endpoint_url="Endpoint of the store with the bucket.  [default: AWS]",
    function="Deployed function to check.",
    sse="Encryption that --write-test and the probe ask for, as in a run.",
    region="Region of stack, bucket and functions.",
    probe="Whether to invoke each function once to check its environment and permissions.",
)
@option(
    "--executor",
    type=executor_type,
    help="Check the machines of this executor, such as the workers of a Dask cluster.",
)
@option("--write-test", is_flag=True, help="Write a small object into each bucket, and delete it.")
@option(
    "--run-duration",
    type=DURATION,
    default=900.0,
    help="Expected duration of the run; credentials should last twice as long.",
)
@choose_format("text", "json")
def command(**flags: Any) -> int:
    """Check this machine, the account and the stack before a run.

    Without --stack, --bucket, --function or --executor, check this machine only.
    """
    if flags["executor"] and not info_of(flags["executor"]).examine:
        checked = " or ".join(executors_where(lambda info: bool(info.examine)))
        raise UsageError(
            f"there are no checks for --executor {flags['executor']}",
            hint=f"use --executor {checked}, or leave --executor out",
        )
    if flags["endpoint_url"] is not None:
        flags["endpoint_url"] = parse_endpoint(flags["endpoint_url"])
    from serverless_bench.features.doctor.examination import examine, show_findings, with_flags_in
    from serverless_bench.features.doctor.findings import Level

    findings = with_flags_in(examine(flags))
    if flags["format"] == "json":
        every = [*findings]
        failed = any(finding.level is Level.FAIL for finding in every)
        say_json({"ok": not failed, "findings": every})
    else:
        failed = show_findings(findings)
    return ExitCode.UNFIT if failed else ExitCode.OK
