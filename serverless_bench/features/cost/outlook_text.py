"""Dry run of a job file: print functions, operations, bytes and keys, and start no function."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from serverless_bench.base.units import format_size
from serverless_bench.cli.output.terminal import say, say_json
from serverless_bench.features.cost.outlook import Outlook, outlook
from serverless_bench.features.stages.job_file import JobFile, Kind
from serverless_bench.features.stages.prepared import PreparedStage


def show(job: JobFile, steps: Mapping[str, PreparedStage], style: str) -> None:
    """Print the outlook of the stages, as text unless the style is json."""
    outlooks = {
        name: outlook(step.prepared.job, step.prepared.keys) for name, step in steps.items()
    }
    if style == "json":
        line = {
            "name": job.name,
            "stages": [{"stage": name, **asdict(expected)} for name, expected in outlooks.items()],
        }
        say_json(line)
        return
    total = len(job.stages)
    say(f"{job.name}: {total} stages; dry run, no stage is started")
    for number, stage in enumerate(job.stages, start=1):
        say("", f"stage {number} of {total}: {stage.title}")
        if stage.kind is Kind.CLEANUP:
            say("  deletes     the objects that earlier stages wrote")
            continue
        say(*(f"  {title:<11} {text}" for title, text in _rows(outlooks[stage.name])))
    sys.stdout.flush()


def _rows(expected: Outlook) -> Iterator[tuple[str, str]]:
    about = "" if expected.exact else "about "
    yield "functions", f"{expected.functions:,}, concurrency {expected.concurrency:,}"
    if expected.prepared_objects:
        size = format_size(expected.prepared_bytes)
        yield "makes first", f"{expected.prepared_objects:,} objects, {about}{size}"
    counts = ", ".join(f"{count:,} {kind}" for kind, count in expected.operations.items())
    period = "" if expected.duration_s is None else f" for {expected.duration_s:g} s"
    if counts:
        yield "operations", f"{about}{counts}{', repeated' * bool(period)}{period}"
        yield "bytes", f"{about}{format_size(expected.bytes)}{' each time' * bool(period)}"
    else:
        yield "operations", f"as many as possible{period}"
    yield from (("example key", key) for key in expected.keys)
