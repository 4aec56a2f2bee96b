"""What a job file would do: functions, operations, bytes and keys, without starting any."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Final

import click
import orjson

from serverless_bench.cli.stages import (
    Step,
    all_well,
    asked,
    example_invocations,
    example_keys,
)
from serverless_bench.driver.job_file import JobFile, Kind
from serverless_bench.job.spec import InvocationSpec, OperationKind, OperationSpec
from serverless_bench.units import format_size
from serverless_bench.workloads import Workload, open_workload

_ENOUGH: Final = 20_000
"""Operations to look at; what more functions do is taken to be like it."""
_EXAMPLES: Final = 2
_MOVING: Final = (
    OperationKind.PUT,
    OperationKind.GET,
    OperationKind.GET_RANGE,
    OperationKind.WRITE_ARRAY,
    OperationKind.APPEND_ARRAY,
    OperationKind.READ_ARRAY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What one stage would do."""

    stage: str
    workload: str
    functions: int
    concurrency: int
    prepared_objects: int
    """Made before the measurement."""
    prepared_bytes: int
    operations: dict[str, int]
    """By kind; empty if time ends the stage and its operations are not counted."""
    bytes: int
    """What they move."""
    duration_s: float | None
    """How long the stage goes on, if time ends it; ``operations`` is one round then."""
    exact: bool
    """Whether every operation was looked at, and none has a size that is drawn."""
    keys: tuple[str, ...]
    """Examples of what it writes, or else reads."""


def outlook_of(step: Step) -> Outlook:
    """Return what a stage would do."""
    prepared = step.prepared
    job = prepared.job
    workload = open_workload(job.workload)
    endless = bool(job.load.mix) and job.load.operations is None
    seen = looked = prepared_objects = prepared_bytes = moved = 0
    kinds: Counter[str] = Counter()
    for invocation in example_invocations(prepared):
        for operation in _made_before(workload, invocation):
            prepared_objects += 1
            prepared_bytes += operation.size or 0
            looked += 1
        for operation in () if endless else asked(workload, invocation):
            kinds[operation.kind.value] += 1
            moved += _bytes(operation)
            looked += 1
        seen += 1
        if looked >= _ENOUGH:
            break
    scale = job.invocations / seen
    return Outlook(
        stage=step.stage.name,
        workload=job.workload,
        functions=job.invocations,
        concurrency=job.concurrency,
        prepared_objects=round(prepared_objects * scale),
        prepared_bytes=round(prepared_bytes * scale),
        operations={kind: round(count * scale) for kind, count in kinds.items()},
        bytes=round(moved * scale),
        duration_s=job.duration_s,
        exact=seen == job.invocations and job.load.sizes is None and not job.load.mix,
        keys=tuple(islice(example_keys(prepared), _EXAMPLES)) or tuple(prepared.keys[:_EXAMPLES]),
    )


def show(job: JobFile, steps: Sequence[Step], style: str) -> None:
    """Print what the stages would do; every style but json is text."""
    outlooks = {step.stage.name: outlook_of(step) for step in steps}
    if style == "json":
        line = {"name": job.name, "stages": [asdict(outlook) for outlook in outlooks.values()]}
        click.echo(orjson.dumps(line).decode())
        return
    total = len(job.stages)
    click.echo(f"{job.name}: {total} stages; this is a dry run, nothing is started")
    for number, stage in enumerate(job.stages, start=1):
        kind = f"{stage.kind}, {stage.workload}" if stage.workload else stage.kind
        click.echo(f"\nstage {number} of {total}: {stage.name} ({kind})")
        if stage.kind is Kind.CLEANUP:
            click.echo("  deletes     what the stages before it wrote")
            continue
        for title, text in _rows(outlooks[stage.name]):
            click.echo(f"  {title:<11} {text}")
    sys.stdout.flush()


def _rows(outlook: Outlook) -> Iterator[tuple[str, str]]:
    about = "" if outlook.exact else "about "
    yield "functions", f"{outlook.functions:,}, at most {outlook.concurrency:,} at once"
    if outlook.prepared_objects:
        size = format_size(outlook.prepared_bytes)
        yield "makes first", f"{outlook.prepared_objects:,} objects, {about}{size}"
    counts = ", ".join(f"{count:,} {kind}" for kind, count in outlook.operations.items())
    again = "" if outlook.duration_s is None else f" for {outlook.duration_s:g} s"
    if counts:
        yield "operations", f"{about}{counts}{', again and again' * bool(again)}{again}"
        yield "bytes", f"{about}{format_size(outlook.bytes)}{' each time' * bool(again)}"
    else:
        yield "operations", f"as many as there is time for{again}"
    for key in outlook.keys:
        yield "key like", key


def _made_before(workload: Workload, invocation: InvocationSpec) -> Iterator[OperationSpec]:
    for thread in range(invocation.load.threads):
        for operation in all_well(workload, workload.prepare(invocation, thread)):
            if operation.kind.creates:
                yield operation


def _bytes(operation: OperationSpec) -> int:
    if operation.kind not in _MOVING:
        return 0
    return (operation.size if operation.length is None else operation.length) or 0
