"""What a job file would do: functions, operations, bytes and keys, without starting any."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from serverless_bench.cli.nested import PreparedStage
from serverless_bench.cli.output.terminal import say, say_json
from serverless_bench.driver.outlook import Outlook, outlook
from serverless_bench.settings.job_file import JobFile, Kind
from serverless_bench.units import format_size


def show(job: JobFile, steps: Mapping[str, PreparedStage], style: str) -> None:
    """Print what the stages would do; every style but json is text."""
    outlooks = {
        name: outlook(step.prepared.job, step.prepared.keys) for name, step in steps.items()
    }
    if style == "json":
        line = {
            "name": job.name,
            "stages": [{"stage": name, **asdict(found)} for name, found in outlooks.items()],
        }
        say_json(line)
        return
    total = len(job.stages)
    say(f"{job.name}: {total} stages; this is a dry run, nothing is started")
    for number, stage in enumerate(job.stages, start=1):
        say("", f"stage {number} of {total}: {stage.title}")
        if stage.kind is Kind.CLEANUP:
            say("  deletes     what the stages before it wrote")
            continue
        say(*(f"  {title:<11} {text}" for title, text in _rows(outlooks[stage.name])))
    sys.stdout.flush()


def _rows(found: Outlook) -> Iterator[tuple[str, str]]:
    about = "" if found.exact else "about "
    yield "functions", f"{found.functions:,}, at most {found.concurrency:,} at once"
    if found.prepared_objects:
        size = format_size(found.prepared_bytes)
        yield "makes first", f"{found.prepared_objects:,} objects, {about}{size}"
    counts = ", ".join(f"{count:,} {kind}" for kind, count in found.operations.items())
    again = "" if found.duration_s is None else f" for {found.duration_s:g} s"
    if counts:
        yield "operations", f"{about}{counts}{', again and again' * bool(again)}{again}"
        yield "bytes", f"{about}{format_size(found.bytes)}{' each time' * bool(again)}"
    else:
        yield "operations", f"as many as there is time for{again}"
    for key in found.keys:
        yield "key like", key
