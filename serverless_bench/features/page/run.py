"""The page of a run, starting with its throughput, failures and bottleneck."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TextIO

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.units import format_count, format_rate, format_seconds, format_size
from serverless_bench.features.bottleneck.part import bottleneck_text
from serverless_bench.features.page import run_charts
from serverless_bench.features.page.activity import ActivityOverTime, activity, status_counts
from serverless_bench.features.page.charts import figure
from serverless_bench.features.page.document import Content, Html, Part, document, tag
from serverless_bench.features.page.values import (
    Figures,
    all_figures,
    definitions,
    flat,
    folded,
    pairs,
    show,
    table,
)
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import Chart
from serverless_bench.features.plot.run_charts import (
    added_charts,
    latency_charts,
    length_s,
    rate_chart,
)
from serverless_bench.job.workload import workload_of
from serverless_bench.metrics.invariants import INVARIANTS
from serverless_bench.metrics.part import parts_of
from serverless_bench.metrics.summary import Summary
from serverless_bench.report.base import problems, rates_of, rows, rows_of, simulated
from serverless_bench.report.pace import achieved
from serverless_bench.report.tables import sections
from serverless_bench.rundir.run import Run

_PROBLEMS: Final = 200
"""Maximum number of problems shown, for runs in which all functions fail differently."""
_FIRST: Final = 8
"""Number of problems that are not collapsed."""
_ATTEMPTS: Final = {
    "attempts": "requests",
    "failed_attempts": "failed",
    "throttled": "throttled",
    "throttled_peak_per_s": "throttled in the worst second",
    "retried_bytes": "wasted (retried)",
    "new_connections": "opened a connection",
    "read_amplification": "bytes transferred per byte read",
}
_TILES: Final = {
    "throughput_bytes_per_s": "average throughput",
    "ops_per_s": "operations per second",
    "peak_1s_bytes_per_s": "peak, best 1 s",
    "steady_bytes_per_s": "steady throughput",
    "per_function_bytes_per_s.p50": "median function",
    "bytes": "moved",
    "latency_s.p50": "median latency",
    "latency_s.p99": "99th percentile",
    "completion_s.p99": "99 % of functions done after",
    "failed": "functions failed",
    "lost": "functions lost",
    "failed_attempts": "failed requests",
    "bill.total": "bill",
}


def page(summary: Summary, run: Run | None) -> str:
    """Return the page of a run.

    Parameters
    ----------
    summary
        Totals of the run.
    run
        The run; without it, details that need the records, such as charts over time, are
        omitted.
    """
    figures = Figures(summary.to_json(), definitions(summary.workload), "report")
    first = lead(summary, run, figures)
    parts = [part for part in _parts(summary, run, figures) if part is not None]
    mark = "" if summary.simulated is None else " (simulated)"
    return document(
        f"{summary.workload}: {summary.name}{mark}", first, parts, figures.definitions()
    )


def _parts(summary: Summary, run: Run | None, figures: Figures) -> Iterator[Part | None]:
    activity_data = None if run is None else activity(run)
    yield _problems(summary)
    if activity_data is not None:
        names = [] if run is None else [run.job.workload, *run.job.options]
        added = [] if run is None else added_charts(run, activity_data.timeline, summary, names)
        yield "Over time", _figures([*_over_time(activity_data, summary), *added])
        yield "Functions", _functions(activity_data, summary)
    yield _operations(summary)
    yield "Requests", _requests(summary, run, figures)
    if activity_data is not None and (clocks := run_charts.clock_chart(activity_data)) is not None:
        yield "Clocks", figure(clocks)
    yield "Self-checks", _checks(summary)
    shown = set[str]()
    for part in parts_of(summary.workload):
        if part.title:
            own = list(rows_of(part, summary))
            shown |= dict(own).keys()
            yield part.title, pairs(own) if own else tag("p", part.nothing)
    report = pairs([(name, value) for name, value in rows(summary) if name not in shown])
    yield "Report", report
    if run is not None:
        yield "Job", _job(run)
    yield all_figures(figures)


def _problems(summary: Summary) -> Part | None:
    items = [tag("li", text, class_="bad") for text in islice(problems(summary), _PROBLEMS + 1)]
    if not items:
        return None
    content = [tag("ul", items[:_FIRST])]
    if len(items) > _FIRST:
        content.append(folded("Show more", tag("ul", items[_FIRST:_PROBLEMS])))
    if len(items) > _PROBLEMS:
        content.append(tag("p", f"Only the first {_PROBLEMS} are shown; sbench report lists all."))
    return "Problems", content


def _over_time(data: ActivityOverTime, summary: Summary) -> Iterator[Chart | None]:
    yield from run_charts.time_charts(data, summary)
    if data.bounded:
        yield run_charts.bounded_chart(data)
    yield from latency_charts(summary.latencies, length_s(data.timeline))


def _functions(data: ActivityOverTime, summary: Summary) -> Iterator[Html]:
    yield from _figures([run_charts.function_map(data)])
    yield from _figures([rate_chart(data.rates, palette.color_of(summary.workload))])
    if data.slowest:
        cells = [
            (
                str(function.index),
                tag("data", format_seconds(function.began_s), value=str(function.began_s)),
                tag("data", format_seconds(function.took_s), value=str(function.took_s)),
                tag("data", format_rate(function.bytes_per_s), value=str(function.bytes_per_s)),
            )
            for function in data.slowest
        ]
        header = ("function", "began at", "took", "rate")
        yield table(header, cells, names=1, caption="The functions that took longest")


def _operations(summary: Summary) -> Part | None:
    tables = [
        table(section.header, section.rows, names=section.names, caption=section.title)
        for section in sections(summary, intervals=True)
    ]
    charts = list(_figures([run_charts.latency_distribution(summary.latencies)]))
    return ("Operations", [*charts, *tables]) if charts or tables else None


def _requests(summary: Summary, run: Run | None, figures: Figures) -> Iterator[Html]:
    values = [(figures.name(path, text), figures.value(path)) for path, text in _ATTEMPTS.items()]
    yield pairs(values)
    if summary.attempt_stats.errors_of_attempts:
        errors = [
            (word, figures.value(f"errors_of_attempts.{word}"))
            for word in summary.attempt_stats.errors_of_attempts
        ]
        yield table(("error word", "requests"), errors, names=1, caption="Failed requests")
    if run is not None and (counts := status_counts(run)):
        yield figure(run_charts.status_chart(counts))
        cells = [(status, f"{count:,}") for status, count in counts.items()]
        yield table(("status", "requests"), cells, names=1, caption="All requests by HTTP status")


def _checks(summary: Summary) -> Iterator[Html]:
    if summary.withheld:
        yield tag("p", "The throughput is withheld for these reasons:", class_="bad")
        yield tag("ul", (tag("li", reason) for reason in summary.withheld))
        text = "Checks performed: "
    else:
        text = f"All {len(INVARIANTS)} checks hold: "
    yield tag("p", text, "; ".join(INVARIANTS), ".")


def _job(run: Run) -> Iterator[Html]:
    settings = [(name, show(value, None, name)) for name, value in flat(run.job.to_json())]
    provenance = [(name, show(value, None, name)) for name, value in flat(run.provenance)]
    non_empty = [(name, value) for name, value in settings if value not in {"-", ""}]
    for caption, held in (("Settings", non_empty), ("Environment", provenance)):
        element = table(("name", "value"), held, names=1, texts=1, caption=caption)
        yield folded(caption, element)


def _figures(charts: Iterable[Chart | None]) -> Iterator[Html]:
    return (figure(chart) for chart in charts if chart is not None)


def lead(summary: Summary, run: Run | None, figures: Figures) -> Html:
    """Return the first paragraph, the origin of the run, and its most important values."""
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
    did = workload_of(summary.workload).look.past_tense
    yield f"{format_count(summary.requested, 'function')} {did} "
    yield tag("strong", format_size(summary.bytes))
    if summary.withheld:
        yield ". "
        yield _bad("The throughput is withheld: the records contradict themselves.")
    elif rates := rates_of(summary):
        yield f" in {format_seconds(summary.elapsed_s)}: "
        yield tag("strong", " and ".join(rates))
        yield ", ".join((" in total", *achieved(summary)))
        yield "."
    else:
        yield "; without bytes there is no throughput."
    yield " "
    yield from _losses(summary)
    if summary.corrupt_objects:
        objects = format_count(summary.corrupt_objects, "object")
        yield _bad(f" {objects} returned bytes that differ from the bytes written.")
    elif summary.verified_bytes == summary.bytes > 0:
        yield " Every byte was compared with what was written."
    if bounded := bottleneck_text(summary, evidence=False):
        yield f" Bottleneck: {bounded}."
    if not summary.ended:
        yield _bad(" The driver has not ended this run.")


def _losses(summary: Summary) -> Iterator[Html]:
    missing = {"failed": summary.failed, "lost": summary.lost}
    if any(missing.values()):
        words = ", ".join(f"{count} {what}" for what, count in missing.items() if count)
        yield _bad(f"{summary.ok} ok, {words}.")
    else:
        yield tag("span", "All are ok, none failed or was lost.", class_="good")
    if summary.latencies.dropped:
        yield _bad(f" {summary.latencies.dropped:,} operations dropped.")


def _bad(text: str) -> Html:
    return tag("span", text, class_="bad")


class _Page:
    """A reporter that shows charts in addition to totals, if the run is available."""

    def __call__(self, summary: Summary, out: TextIO) -> None:
        """Write the page of a summary without its run."""
        out.write(page(summary, None))

    def of_run(self, summary: Summary, run: Run, out: TextIO) -> None:
        """Write the page of a run."""
        out.write(page(summary, run))


report = _Page()
