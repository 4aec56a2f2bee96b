"""What a reporter is, and the words that reporters for people share."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TextIO

from serverless_bench.analysis.bottleneck import Bottleneck
from serverless_bench.analysis.delivery_stats import Deliveries
from serverless_bench.analysis.summary import GateSummary, Summary
from serverless_bench.analysis.visibility import SEEN
from serverless_bench.aws.cost.bill import Bill
from serverless_bench.aws.cost.usage import format_money
from serverless_bench.reporters import pace
from serverless_bench.rundir.tables import RATE_PERCENTILES
from serverless_bench.units import (
    MIB,
    format_rate,
    format_seconds,
    format_size,
)


class Reporter(Protocol):
    """Formats numbers; computes none."""

    def __call__(self, summary: Summary, out: TextIO) -> None:
        """Write the report."""


def headline(summary: Summary) -> str:
    """Return the counts that every report begins with: nothing may be missing in silence."""
    text = (
        f"{summary.ok} of {summary.requested} functions ok, {summary.failed} failed, "
        f"{summary.lost} lost, {summary.duplicate} duplicate"
    )
    for counts in pace.counts(summary):
        text += f"; {counts}"
    if not summary.ended:
        text += "; the driver has not ended this run"
    if summary.skipped_lines:
        text += f"; {summary.skipped_lines} unreadable lines skipped"
    if summary.missing_functions:
        low, high = summary.missing_functions.whole_bytes_per_s
        text += (
            f"; with the {summary.missing_functions.count} missing ones"
            f" {format_rate(low)} to {format_rate(high)} in the same span"
        )
    return text


def rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield what the table of a report says, name and value."""
    yield "bytes moved", _bytes(summary)
    if summary.workload == "read" or summary.verified_bytes or summary.corrupt_objects:
        yield "verified", _verified(summary)
    if summary.withheld:
        yield "throughput", "withheld, see below"
    else:
        yield "peak, best 1 s", format_rate(summary.peak_1s_bytes_per_s)
        yield "peak, best 5 s", format_rate(summary.peak_5s_bytes_per_s)
        yield "steady", _steady(summary)
        yield "whole", _over(summary.whole_bytes_per_s, summary.span_s) + _paused(summary)
    if summary.latencies.open_loop:
        yield "operations", pace.rates(summary)
    yield "per function", _percentiles(summary.per_function_bytes_per_s, format_rate)
    yield from _acknowledged(summary)
    yield "functions done at", _done(summary)
    yield "makespan", format_seconds(summary.makespan_s)
    yield "attempts", _attempts(summary)
    if summary.warmup_operations:
        yield "warm-up", f"{summary.warmup_operations} operations, in none of these rates and times"
    if summary.gate:
        yield "gate", _gate(summary.gate)
    if summary.bottleneck.functions:
        yield "bounded by", _bottleneck(summary.bottleneck)
    yield "store", f"{summary.store}, {summary.planned_concurrency} functions at once"
    yield "clocks", _clocks(summary)
    yield "client", f"{summary.client}, {_cpu(summary)}"
    yield (
        "workers",
        f"{summary.executor}, {summary.workers} used, {summary.cold_starts} cold starts",
    )
    yield from _remote(summary)


def _acknowledged(summary: Summary) -> Iterator[tuple[str, str]]:
    for name, title, values in (
        ("ttfb_s", "time to first byte", summary.ttfb_s),
        ("ack_s", "last byte to ack", summary.ack_s),
    ):
        if name in summary.not_shown:
            yield title, f"- ({summary.client} does not show {SEEN[name]})"
        elif values:
            yield title, _percentiles(values, format_seconds)


def problems(summary: Summary) -> Iterator[str]:
    """Yield one line for each kind of failure, and for each corrupt range."""
    for why in summary.withheld:
        yield f"headline withheld: {why}"
    yield from pace.overdue(summary)
    for error, count in summary.errors.items():
        yield f"{count} x {error}"
    if summary.clocks.suspect:
        yield f"{summary.clocks.suspect} functions contradict themselves about their clock"
    for bad in summary.bad_ranges:
        yield f"{bad['key']}: {bad['length']} bytes at {bad['offset']} are {_found(bad)}"
    if summary.unknown_objects:
        yield f"{summary.unknown_objects} objects were not written by sbench: read unverified"


_FOUND: Final[Mapping[str, str]] = {
    "extra": "too many: the object goes on after its size",
    "missing": "missing: the object ends too early",
    "other_generation": "this object's generation {found_generation}",
    "other_object": "bytes from offset {found_offset} of {whose}",
    "other_offset": "this object's own bytes from offset {found_offset}",
    "unknown": "not what was written ({bad_bytes} of them differ)",
    "zeros": "zeros",
}


def _found(bad: Mapping[str, object]) -> str:
    stranger = f"an object that this run does not know ({bad['found_key_hash']})"
    return _FOUND[str(bad["found"])].format_map({**bad, "whose": bad["found_key"] or stranger})


def _bytes(summary: Summary) -> str:
    text = f"{format_size(summary.bytes)} ({summary.bytes / 1e6:.1f} MB)"
    if summary.object_bytes:
        size = summary.object_bytes
        text += f", objects of {size / MIB:g} MiB ({size / 1e6:.1f} MB)"
    return text


def _verified(summary: Summary) -> str:
    text = format_size(summary.verified_bytes)
    if summary.corrupt_objects:
        return f"{text}; {summary.corrupt_objects} objects corrupt, {summary.bad_bytes} bytes wrong"
    return f"{text}, every byte" if summary.verified_bytes == summary.bytes > 0 else text


def _steady(summary: Summary) -> str:
    if summary.steady_bytes_per_s is None:
        needed = -(-summary.planned_concurrency * summary.threads * 9 // 10)
        what = "threads" if summary.threads > 1 else "functions"
        why = f"never {needed} {what} at work for 3 s"
        if summary.latencies.open_loop and not summary.latencies.overdue:
            why += ": in an open loop they wait until operations are due"
        return f"- ({why})"
    return _over(summary.steady_bytes_per_s, summary.steady_window_s)


def _over(bytes_per_s: float | None, seconds: float | None) -> str:
    rate = format_rate(bytes_per_s)
    return rate if bytes_per_s is None else f"{rate} over {format_seconds(seconds)}"


def _paused(summary: Summary) -> str:
    if not summary.paused_s:
        return ""
    return f", without a pause of {format_seconds(summary.paused_s)} before it was resumed"


def _percentiles(values: Mapping[str, float] | None, form: object) -> str:
    if not values or not callable(form):
        return "-"
    return "  ".join(f"p{p} {form(values[f'p{p}'])}" for p in RATE_PERCENTILES)


def _done(summary: Summary) -> str:
    return "  ".join(f"{name} {format_seconds(at)}" for name, at in summary.done_s.items())


def _attempts(summary: Summary) -> str:
    if summary.libraries:
        return "made by the library, and not seen"
    stats = summary.attempt_stats
    what = "operations" if summary.latencies.notable else "objects"
    text = f"{stats.attempts} for {summary.operations} {what}"
    if stats.throttled:
        text += f", {stats.throttled} throttled (at most {stats.throttled_peak_per_s} in 1 s)"
    if stats.retried_bytes:
        text += f", {format_size(stats.retried_bytes)} moved in vain"
    return text


def _gate(gate: GateSummary) -> str:
    if gate.expected is None:
        text = "never opened by the driver"
    else:
        text = f"opened with {gate.announced} functions there, {gate.expected} expected"
    if gate.late:
        text += f", {gate.late} late"
    if gate.wait_s:
        text += f"; waited p50 {format_seconds(gate.wait_s['p50'])}"
    return text


_BOUND: Final[Mapping[str, str]] = {
    "client": "client",
    "function_network": "the function's own network",
    "interpreter_lock": "the interpreter's lock",
    "launch": "launch",
    "schedule": "the rate that was asked for",
    "store": "store",
    "unknown": "cannot tell",
}


def _bottleneck(found: Bottleneck) -> str:
    total = sum(found.functions.values())
    text = ", ".join(
        f"{_BOUND[name]} {count / total:.0%}"
        for name, count in sorted(found.functions.items(), key=lambda item: -item[1])
    )
    if found.client_share is not None:
        text += f"; processor busy or awaited {found.client_share:.0%} of the time"
    if found.lock_share is not None:
        text += f"; the interpreter's lock taken {found.lock_share:.0%}"
    if found.sustained_bytes_per_s is not None and found.burst_bytes is not None:
        text += (
            f"; burst {format_size(round(found.burst_bytes))},"
            f" then {format_rate(found.sustained_bytes_per_s)} each"
        )
    return text


def _clocks(summary: Summary) -> str:
    clocks = summary.clocks
    if clocks.width_p50_s is None:
        return "-"
    text = (
        f"known within {format_seconds(clocks.width_p50_s)} (p50),"
        f" {format_seconds(clocks.width_max_s)} (worst)"
    )
    return f"{text}; {clocks.corrected} shifted" if clocks.corrected else text


def _remote(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.deliveries:
        yield from _deliveries(summary.deliveries)
    if summary.bill:
        yield from _bill(summary.bill)


def _deliveries(found: Deliveries) -> Iterator[tuple[str, str]]:
    events = (
        f"{found.received} records received, {found.refusals} launches refused,"
        f" {found.never_began} attempts taken back"
    )
    yield "events", events
    for wave in found.waves:
        after = format_seconds(wave.after_s)
        yield f"wave {wave.number}", f"{wave.count} functions launched again after {after}"
    if found.lag_s:
        each = (
            ""
            if found.requests_per_function is None
            else f", {found.requests_per_function:.2f} requests each"
        )
        yield "records arrived after", _percentiles(found.lag_s, format_seconds) + each
    if found.import_s:
        yield "cold start, import", _percentiles(found.import_s, format_seconds)
        yield "to the first byte", _percentiles(found.cold_start_s, format_seconds)


def _bill(bill: Bill) -> Iterator[tuple[str, str]]:
    def money(amount: float) -> str:
        return format_money(amount, bill.currency)

    shown = {
        "Lambda": bill.dollars.compute + bill.dollars.invocations,
        "PUT class": bill.dollars.puts,
        "GET": bill.dollars.gets,
        "control": bill.dollars.control,
        "logs": bill.dollars.logs,
    }
    parts = ", ".join(f"{name} {money(amount)}" for name, amount in shown.items() if amount)
    where = "" if bill.on_aws else "as if on AWS Lambda, "
    yield (
        "bill",
        f"{money(bill.total)}: {parts}; {where}{bill.gb_s:.4g} GB-s on {bill.architecture}",
    )
    if not bill.requests_exact:
        yield "requests", "at least: a library does not show all, or not all were counted"
    yield "prices", f"of {bill.as_of}, {bill.region}"
    if bill.unknown:
        yield "not in it", f"{bill.unknown} without a record, {money(bill.unknown_at_most)} at most"
    if bill.estimate is not None and bill.estimate_error is not None:
        yield "estimate", f"{money(bill.estimate)}, error {bill.estimate_error:+.1%}"
    if bill.storage_per_h:
        forgotten = money(bill.storage_per_month)
        yield "storage", f"{money(bill.storage_per_h)} an hour, {forgotten} a month if forgotten"


def _cpu(summary: Summary) -> str:
    cpu = "-" if summary.cpu_s_per_gib is None else f"{summary.cpu_s_per_gib:.2f}"
    peak = "-" if summary.max_rss_bytes is None else format_size(summary.max_rss_bytes)
    if summary.libraries:
        # Their own figures stand apart; here, making and comparing bytes would be in it.
        return f"at most {peak} resident"
    return f"{cpu} core-s/GiB, at most {peak} resident"
