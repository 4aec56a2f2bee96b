"""What a page of a run opens with: how much, how many were lost, and what bounded it."""

from collections.abc import Iterator
from typing import Final

from serverless_bench.analysis.summary import Summary
from serverless_bench.clock import utc_stamp
from serverless_bench.job.workload import workload_of
from serverless_bench.reporters.base import rows, simulated
from serverless_bench.reporters.page.markup import Content, Html, tag
from serverless_bench.reporters.page.values import Figures
from serverless_bench.rundir.run import Run
from serverless_bench.units import format_count, format_rate, format_seconds, format_size

_TILES: Final = {
    "whole_bytes_per_s": "whole throughput",
    "peak_1s_bytes_per_s": "peak, best 1 s",
    "steady_bytes_per_s": "steady throughput",
    "per_function_bytes_per_s.p50": "median function",
    "bytes": "moved",
    "latency_s.p50": "median latency",
    "latency_s.p99": "99th percentile",
    "t99_s": "99 % done after",
    "failed": "functions failed",
    "lost": "functions lost",
    "failed_attempts": "failed requests",
    "bill.total": "bill",
}


def lead(summary: Summary, run: Run | None, figures: Figures) -> Html:
    """Return the first paragraph, where the run was made, and the figures that matter most."""
    when = "" if run is None else f", begun {utc_stamp(run.created_ns, separators=True)}"
    where = (
        f"Run {summary.run_id}{when}. Client {summary.client}, functions by {summary.executor},"
        f" store {summary.store}."
    )
    tiles = (
        tag("div", tag("dt", figures.name(path, text)), tag("dd", figures.value(path)))
        for path, text in _TILES.items()
        if path in figures
    )
    return tag(
        "div",
        tag("p", _sentences(summary), class_="verdict"),
        tag("p", where, class_="soft"),
        tag("dl", tiles, class_="tiles"),
    )


def _sentences(summary: Summary) -> Iterator[Content]:
    for mark in simulated(summary):
        yield _bad(f"{mark}. ")
    did = workload_of(summary.workload).past_tense
    yield f"{format_count(summary.requested, 'function')} {did} "
    yield tag("strong", format_size(summary.bytes))
    if summary.withheld:
        yield ". "
        yield _bad("The throughput is withheld: the records contradict themselves.")
    elif summary.whole_bytes_per_s is None:
        yield "; without bytes there is no throughput."
    else:
        yield f" in {format_seconds(summary.span_s)}: "
        yield tag("strong", format_rate(summary.whole_bytes_per_s))
        yield " together."
    yield " "
    yield from _losses(summary)
    if summary.corrupt_objects:
        objects = format_count(summary.corrupt_objects, "object")
        yield _bad(f" {objects} came back with other bytes than were written.")
    elif summary.verified_bytes == summary.bytes > 0:
        yield " Every byte was compared with what was written."
    bounded = dict(rows(summary)).get("bounded by", "").partition(";")[0]
    if bounded:
        yield f" Bounded by {bounded}."
    if not summary.ended:
        yield _bad(" The driver has not ended this run.")


def _losses(summary: Summary) -> Iterator[Html]:
    missing = {"failed": summary.failed, "lost": summary.lost}
    if any(missing.values()):
        words = ", ".join(f"{count} {what}" for what, count in missing.items() if count)
        yield _bad(f"{summary.ok} ok, {words}.")
    else:
        yield tag("span", "All are ok, none failed or was lost.", class_="good")
    if summary.latencies.overdue:
        yield _bad(f" {summary.latencies.overdue:,} operations that were due never began.")


def _bad(text: str) -> Html:
    return tag("span", text, class_="bad")
