"""Texts shared by the reporters for people."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from serverless_bench.base.units import (
    common_rate,
    format_count,
    format_per_s,
    format_rate,
    format_seconds,
    format_size,
)
from serverless_bench.job.workload import Trait, workload_of
from serverless_bench.metrics.attempt_stats import SEEN, SENT
from serverless_bench.metrics.part import Part, Position, Rows, parts_of, present
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.throughput import COMPLETED
from serverless_bench.report import pace
from serverless_bench.rundir.schema import Stopped
from serverless_bench.rundir.tables import RATE_PERCENTILES, rank_of

Row = tuple[str, str | None]
"""Name and value of a row of the first table; rows with None are omitted."""
_SMALL: Final = 1 << 20
"""Bytes of an operation below which operations per second say more than bytes per second."""


def headline(summary: Summary) -> str:
    """Return the summary line of every report, which includes all failures."""
    counts = (
        f"{summary.ok:,} of {summary.requested:,} functions ok, {summary.failed:,} failed, "
        f"{summary.lost:,} lost, {summary.duplicate:,} duplicate"
    )
    stopped = () if summary.stopped is None else (_stopped(summary, summary.stopped),)
    parts = [*stopped, *simulated(summary), *_broken(summary), *pace.achieved(summary), counts]
    marks = {
        "the driver has not ended this run": not summary.ended,
        "sbench clean has begun to delete its objects": summary.cleaned,
        f"{format_count(summary.skipped_lines, 'unreadable line')} skipped": summary.skipped_lines,
    }
    parts += [mark for mark, holds in marks.items() if holds]
    if summary.missing_functions:
        low, high = map(format_rate, summary.missing_functions.throughput_bytes_per_s)
        missing = summary.missing_functions.count
        missing_text = "missing one" if missing == 1 else f"{missing} missing ones"
        parts.append(f"with the {missing_text} {low} to {high}")
    return "; ".join(parts)


def _stopped(summary: Summary, stopped: Stopped) -> str:
    """Return how a run ended early, and what it did until then."""
    done = format_count(summary.operations, "operation")
    rate = summary.throughput_bytes_per_s
    return f"{stopped.remark}: {done}" + (f", {format_rate(rate)}" if rate else "")


def rates_of(summary: Summary) -> list[str]:
    """Return bytes and operations per second, first the rate that matters for this size."""
    per_s = summary.ops_per_s
    operations = f"{format_per_s(per_s).removesuffix('/s')} op/s" if per_s else ""
    throughput = (
        format_rate(summary.throughput_bytes_per_s) if summary.throughput_bytes_per_s else ""
    )
    is_small = summary.bytes < _SMALL * summary.operations
    ordered = (operations, throughput) if is_small else (throughput, operations)
    return [text for text in ordered if text]


def unmoved(summary: Summary) -> str:
    """Return why there is no rate of bytes."""
    if summary.lost:
        functions = format_count(summary.lost, "function")
        return f"not known: {functions} left no record"
    return "no bytes were moved"


def _broken(summary: Summary) -> Iterator[str]:
    for part, figures in present(summary):
        yield from part.headline(figures)


def simulated(summary: Summary) -> Iterator[str]:
    """Yield the notice that precedes all other texts about a simulated run."""
    if summary.simulated is not None:
        yield f"SIMULATED (model {summary.simulated}); not a measurement"


def rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the rows of a report's table as names and values."""
    warm = f"{format_count(summary.warmup_operations, 'operation')}, not counted in rates and times"
    used = f"{summary.workers} used, {format_count(summary.cold_starts, 'cold start')}"
    placed: dict[Position, list[Row]] = {position: [] for position in Position}
    for part in parts_of(summary.workload):
        placed[part.position] += rows_of(part, summary)
    table: list[Row] = [
        ("bytes moved", _bytes(summary)),
        ("verified", verified(summary)),
        *_throughput(summary),
        ("operations", _operations(summary)),
        ("per function", _per_function(summary)),
        ("time to first byte", _seen(summary, "ttfb_s", summary.ttfb_s)),
        ("last byte to ack", _seen(summary, "ack_s", summary.ack_s)),
        ("completion", completion(summary)),
        ("makespan", format_seconds(summary.makespan_s)),
        ("attempts", _attempts(summary)),
        *placed[Position.RESULT],
        ("warm-up", warm if summary.warmup_operations else None),
        *placed[Position.PACE],
        *pace.waste(summary),
        *placed[Position.LIMIT],
        ("store", store(summary)),
        ("clock uncertainty", _clocks(summary)),
        ("client", client(summary)),
        ("workers", f"{summary.executor}, {used if summary.workers else 'not recorded'}"),
        *placed[Position.WORKERS],
        *placed[Position.LAST],
    ]
    replaced = dict[str, str]()
    for part, figures in present(summary):
        replaced |= part.replaced(figures, summary)
    return ((name, replaced.get(name, value)) for name, value in table if value is not None)


def rows_of(part: Part[Any], summary: Summary) -> Rows:
    """Return the rows of a part of a report."""
    figures = part.results_in(summary)
    return part.absent(summary) if figures is None else part.rows(figures, summary)


def _throughput(summary: Summary) -> Sequence[Row]:
    """Return the three throughputs in the same unit, with reasons for missing values."""
    if summary.withheld:
        return [("throughput", "withheld, see below")]
    like = common_rate(
        (
            summary.peak_1s_bytes_per_s,
            summary.peak_5s_bytes_per_s,
            summary.steady_bytes_per_s,
            summary.throughput_bytes_per_s,
        )
    )

    def over(bytes_per_s: float | None, seconds: float | None, reason: str) -> str:
        if bytes_per_s is None:
            return f"- ({reason})"
        rate = format_rate(bytes_per_s, like=like)
        return rate if seconds is None else f"{rate} over {format_seconds(seconds)}"

    short = no_bytes = unmoved(summary)
    if summary.throughput_bytes_per_s is not None:
        short = f"the run took {format_seconds(summary.elapsed_s)}"
    if "peak_1s_bytes_per_s" in summary.not_shown:
        short = f"{summary.client} does not show {SEEN['peak_1s_bytes_per_s']}"
    steady = over(summary.steady_bytes_per_s, summary.steady_window_s, _not_steady(summary))
    average = over(summary.throughput_bytes_per_s, summary.elapsed_s, no_bytes)
    if summary.paused_s:
        average += f", without {format_seconds(summary.paused_s)} in which no driver was active"
    best = over(summary.peak_1s_bytes_per_s, None, short)
    if summary.peak_1s_bytes_per_s and SENT & {row.kind for row in summary.latencies.by_kind}:
        best += ", writes as the store's kernel acknowledged them"
    return [
        ("peak, best 1 s", best),
        ("peak, best 5 s", over(summary.peak_5s_bytes_per_s, None, short)),
        ("steady", steady),
        ("average", average),
    ]


def has_table(summary: Summary) -> bool:
    """Return whether a report has a table of operations, as other tools' reports always do."""
    is_part = bool(summary.warmup_operations) and summary.executor == "imported"
    return summary.latencies.notable or is_part


def _operations(summary: Summary) -> str | None:
    """Return the rate of operations, unless a table of operations follows."""
    latencies = summary.latencies
    if latencies.open_loop:
        return pace.rates(summary)
    # At most one kind: multiple kinds are notable.
    for row in latencies.by_kind[:1]:
        if row.operations_per_s is not None and not has_table(summary):
            return f"{row.ok} done, {format_per_s(row.operations_per_s)}"
    return None


def _per_function(summary: Summary) -> str:
    rates = summary.per_function_bytes_per_s
    if not rates:
        return "- (no function is ok)" if not summary.ok else f"- ({unmoved(summary)})"
    like = common_rate(rate for name, rate in rates.items() if name != "n")
    return percentiles_text(rates, lambda rate: format_rate(rate, like=like))


def _seen(summary: Summary, name: str, values: Mapping[str, float] | None) -> str | None:
    if name in summary.not_shown:
        return f"- ({summary.client} does not show {SEEN[name]})"
    return percentiles_text(values, format_seconds) if values else None


def problems(summary: Summary, *, named: int | None = None) -> Iterator[str]:
    """Yield a line for each kind of failure, and for each corrupt range.

    A line about missing work has up to ``named`` names; None names all that the summary has.
    """
    yield from (f"headline withheld: {reason}" for reason in summary.withheld)
    for part, figures in present(summary):
        yield from part.missing(figures, named)
    yield from pace.dropped(summary)
    yield from (f"{count} x {error}" for error, count in summary.errors.items())
    if summary.unrecorded_launches:
        launches = "launch" if summary.unrecorded_launches == 1 else "launches"
        yield (
            f"{summary.unrecorded_launches} {launches} left no record: the requests and bytes they"
            " sent are not counted"
        )
    if summary.suspended_s:
        asleep = format_seconds(summary.suspended_s)
        yield f"the driver's machine was suspended for {asleep} (or its clock was set ahead)"
    if summary.clocks.suspect:
        suspect = format_count(summary.clocks.suspect, "function")
        yield f"clocks of {suspect}, or the store's Date, contradict the evidence; left as they are"
    if summary.neighbours is not None:
        yield summary.neighbours.remark
    for bad in summary.bad_ranges:
        verb = "is" if bad["length"] == 1 else "are"
        place = f"{format_count(bad['length'], 'byte')} at {bad['offset']}"
        yield f"{bad['key']}: {place} {verb} {_found(bad)}"
    for part, figures in present(summary):
        yield from part.wrong(figures)
    if summary.unknown_objects:
        objects = format_count(summary.unknown_objects, "object")
        verb = "was" if summary.unknown_objects == 1 else "were"
        yield f"{objects} {verb} not written by sbench: read unverified"


_FOUND: Final[Mapping[str, str]] = {
    "extra": "too many: the object goes on after its size",
    "missing": "missing: the object ends too early",
    "other_generation": "this object's generation {found_generation}",
    "other_object": "bytes from offset {found_offset} of {whose}",
    "other_offset": "this object's own bytes from offset {found_offset}",
    "unknown": "not what was written{of_them}",
    "zeros": "zeros",
}


def _found(bad: Mapping[str, object]) -> str:
    unknown_object = f"an object that this run does not know ({bad['found_key_hash']})"
    whose, differ = bad["found_key"] or unknown_object, bad["bad_bytes"]
    verb = "differs" if differ == 1 else "differ"
    of_them = "" if differ == bad["length"] else f" ({differ} of them {verb})"
    return _FOUND[str(bad["found"])].format_map({**bad, "whose": whose, "of_them": of_them})


def store(summary: Summary) -> str:
    """Return where the objects are, and the concurrency of the functions."""
    # Other tools do not record the bucket, or its endpoint.
    bucket, _, endpoint = summary.store.partition(" at ")
    place = " at ".join(filter(None, (bucket or "bucket not recorded", endpoint)))
    return f"{place}, concurrency {summary.planned_concurrency:,}"


def _bytes(summary: Summary) -> str:
    text = format_size(summary.bytes)
    if summary.object_bytes:
        text += f", objects of {format_size(summary.object_bytes)}"
    return text


def verified(summary: Summary) -> str | None:
    """Return how many bytes were verified; None if the workload does not verify."""
    text = format_size(summary.verified_bytes)
    if summary.corrupt_objects:
        corrupt = format_count(summary.corrupt_objects, "object")
        return f"{text}; {corrupt} corrupt, {format_count(summary.bad_bytes, 'byte')} wrong"
    if summary.verified_bytes == summary.bytes > 0:
        return f"{text}, every byte"
    return (
        text
        if Trait.VERIFIES in workload_of(summary.workload).traits or summary.verified_bytes
        else None
    )


def _not_steady(summary: Summary) -> str:
    unit = "thread" if summary.threads > 1 else "function"
    planned = format_count(summary.planned_concurrency * summary.threads, unit)
    reason = f"never 90% of {planned} active for 3 s"
    if summary.latencies.open_loop and not summary.latencies.dropped:
        reason += "; normal below saturation in an open loop"
    return reason


def completion(summary: Summary) -> str:
    """Return the times until shares of the functions were done: ``50% 7 s, all never``."""
    times = {
        "all" if percent == 100 else f"{percent}%": format_seconds(at)
        if at is not None
        else "never"
        for percent, at in zip(COMPLETED.values(), summary.completion_s.values(), strict=True)
    }
    if times["99%"] == times["all"]:
        del times["99%"]
    return ", ".join(f"{share} {at}" for share, at in times.items())


def percentiles_text(values: Mapping[str, float] | None, form: Callable[[float], str]) -> str:
    """Return percentiles and the number of values; a single value if all are equal.

    Percentiles that equal the minimum or maximum of a small sample are named min or max.
    """
    if not values:
        return "-"
    count = int(values["n"])
    texts = {_name(p, count): form(values[f"p{p}"]) for p in RATE_PERCENTILES}
    if values["p1"] == values["p99"]:
        return texts["p50"]
    return "  ".join(f"{name} {value}" for name, value in texts.items()) + f"  of {count:,}"


def _name(percent: int, count: int) -> str:
    extremes = {1: "min", count: "max"}
    return f"p{percent}" if percent == 50 else extremes.get(rank_of(percent, count), f"p{percent}")


def _attempts(summary: Summary) -> str:
    stats = summary.attempt_stats
    unit = "operation" if summary.latencies.notable else "object"
    text = f"{stats.attempts:,} for {format_count(summary.operations, unit)}"
    if stats.throttled:
        text += f", {stats.throttled:,} throttled (at most {stats.throttled_peak_per_s:,} in 1 s)"
    if stats.retried_bytes:
        text += f", {format_size(stats.retried_bytes)} wasted (retried)"
    return text


def _clocks(summary: Summary) -> str:
    clocks = summary.clocks
    if clocks.width_p50_s is None:
        return "- (no evidence of any worker's clock)"
    text = f"{format_seconds(clocks.width_p50_s)} (p50), {format_seconds(clocks.width_max_s)} (max)"
    return f"{text}; {clocks.corrected} corrected" if clocks.corrected else text


def client(summary: Summary, *, has_cpu_time: bool = True) -> str:
    """Return the name of the client, and what workers used, with or without CPU time."""
    cpu_s, rss_bytes = summary.cpu_s_per_gib if has_cpu_time else None, summary.peak_rss_bytes
    parts = (
        "" if cpu_s is None else f"{cpu_s:,.2f} CPU-s/GiB",
        "" if rss_bytes is None else f"peak RSS {format_size(rss_bytes)}",
    )
    used = ", ".join(filter(None, parts)) or "CPU time and memory not recorded"
    return f"{summary.client}, {used}"
