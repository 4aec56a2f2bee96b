"""``sbench doctor``."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click
import orjson

from serverless_bench.aws.cloudformation import Stack, read_stack
from serverless_bench.cli.checkup import (
    Finding,
    Level,
    Patient,
    credentials,
    fail,
    functions,
    identity,
    machine,
    ok,
    quota,
    versions,
)
from serverless_bench.cli.checkup_buckets import Bucket, look_at
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.options import choose_format, option
from serverless_bench.errors import SbenchError
from serverless_bench.job.defaults import CONTROL_PREFIX, DEFAULT_PREFIX
from serverless_bench.job.endpoint import parse_endpoint

if TYPE_CHECKING:
    from rich.console import Console

_STYLES: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


@click.command("doctor")
@option("--stack", help="What `sam deploy` made.")
@option("--bucket", help="Bucket to look at.")
@option("--endpoint-url", help="Of the store that has the bucket; AWS without it.")
@option("--function", multiple=True, help="Deployed function to look at.")
@option("--region", help="Where they are.")
@option("--write-test", is_flag=True, help="Write a small object into each bucket, and delete it.")
@option(
    "--run-seconds",
    type=float,
    default=900.0,
    help="How long the run will take; credentials should last twice as long.",
)
@choose_format("text", "json")
def command(**flags: Any) -> int:  # noqa: ANN401 - too many to name
    """Check this machine, the account and the stack before a run.

    Without --stack, --bucket or --function it looks at this machine only.
    """
    from rich.console import Console

    if flags["endpoint_url"] is not None:
        flags["endpoint_url"] = parse_endpoint(flags["endpoint_url"])
    console = Console(highlight=False, markup=False, soft_wrap=True)
    found = []
    for finding in examine(flags):
        found.append(finding)
        if flags["format"] == "text":
            _show(console, finding)
    failed = any(finding.level is Level.FAIL for finding in found)
    if flags["format"] == "json":
        lines = [asdict(finding) for finding in found]
        click.echo(orjson.dumps({"ok": not failed, "findings": lines}))
    return ExitCode.UNFIT if failed else ExitCode.OK


def examine(flags: dict[str, Any]) -> Iterator[Finding]:
    """Yield what is found, in the order in which it is looked for."""
    patient = Patient(
        region=flags["region"], run_s=flags["run_seconds"], functions=tuple(flags["function"])
    )
    yield from versions(patient)
    yield from machine(patient)
    if not (flags["stack"] or flags["bucket"] or flags["function"]):
        return
    yield from credentials(patient)
    stack, problem = _stack(flags["stack"], patient)
    if problem is not None:
        yield problem
    # A store that is not AWS's as a rule has nobody to ask who we are.
    if flags["endpoint_url"] is None or patient.functions:
        yield from identity(patient)
    if patient.functions:
        yield from quota(patient)
        yield from functions(patient)
    for bucket in _buckets(flags, stack):
        yield from look_at(bucket, patient, write_test=flags["write_test"])


def _stack(name: str | None, patient: Patient) -> tuple[Stack | None, Finding | None]:
    if name is None:
        return None, None
    try:
        stack = read_stack(name, region=patient.region)
    except SbenchError as exc:
        return None, fail(f"stack {name}", str(exc), exc.hint)
    patient.region = stack.region
    patient.functions = patient.functions or (stack.function_name,)
    return stack, ok(f"stack {name}", f"in {stack.region}")


def _buckets(flags: dict[str, Any], stack: Stack | None) -> Iterator[Bucket]:
    url = flags["endpoint_url"]
    if flags["bucket"]:
        yield Bucket(name=flags["bucket"], prefix=DEFAULT_PREFIX, endpoint_url=url)
    if stack is not None:
        if stack.data_bucket != flags["bucket"]:
            yield Bucket(name=stack.data_bucket, prefix=DEFAULT_PREFIX, endpoint_url=url)
        yield Bucket(
            name=stack.control_bucket, prefix=CONTROL_PREFIX, endpoint_url=url, claims=True
        )


def _show(console: "Console", finding: Finding) -> None:
    line = f"{finding.level.value:4}  {finding.what}: {finding.text}"
    if finding.hint:
        line += f" -> {finding.hint}"
    console.print(line, style=_STYLES[finding.level])
