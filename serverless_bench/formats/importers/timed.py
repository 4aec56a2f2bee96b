"""What PyWren's and Lithops' pickles have in common: one timed result per function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serverless_bench.errors import UsageError
from serverless_bench.formats.importers.base import (
    GET,
    MAX_INSTANT_S,
    MAX_OPERATION_BYTES,
    PUT,
    FunctionCall,
    Hints,
    Imported,
    Rows,
    check,
    instant_ns,
    plain_key,
    refuse,
)
from serverless_bench.rundir.tables import ABSENT
from serverless_bench.units import NS_PER_S

_SAME_CLOCK_NS: Final = 10_000_000
"""Worker and result times are of one clock; floats of seconds are off by less than 1 us."""
_MAX_MB_PER_S: Final = 1e9
_RATE_SLACK: Final = 0.01
_LOST: Final = "no result in the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What one function measured."""

    start_ns: int
    end_ns: int
    duration_s: float
    """The difference of the file's seconds, which its rate was made with."""
    mb_per_s: float
    """10**6 bytes per second."""
    size_bytes: int | None
    """None if the file has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Where the statistics of a function call have what; None for what they lack."""

    submitted: str
    collected: str | None
    start: tuple[str, ...]
    """The first of these that is there."""
    end: tuple[str, ...]
    is_cold: tuple[str, bool]
    """Which entry has which value after a cold start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A whole pickle, taken apart."""

    path: Path
    tool: str
    timed: Sequence[Timed | None]
    """None where the file has an empty result."""
    stats: Sequence[object]
    names: Stats
    keys: Sequence[object]
    requested: int
    start_s: object
    bucket: object


def timed(path: Path, number: int, values: Sequence[object]) -> Timed:
    """Return a result from its start, stop, rate and bytes, which may be None.

    Raises
    ------
    UsageError
        If one of them cannot be.
    """

    def number_of(what: str, value: object, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            refuse(path, f"result {number} has no {what} that can be")
        return float(value)

    start, stop, rate, size = values
    start_s = number_of("start", start, MAX_INSTANT_S)
    stop_s = number_of("end", stop, MAX_INSTANT_S)
    if stop_s < start_s:
        refuse(path, f"result {number} ends before it starts")
    return Timed(
        start_ns=round(start_s * NS_PER_S),
        end_ns=round(stop_s * NS_PER_S),
        duration_s=stop_s - start_s,
        mb_per_s=number_of("rate", rate, _MAX_MB_PER_S),
        size_bytes=None
        if size is None
        else round(number_of("number of bytes", size, MAX_OPERATION_BYTES)),
    )


def imported_from(results: Results, hints: Hints) -> Imported:
    """Return results as function calls with one operation each.

    Parameters
    ----------
    results
        What the file has.
    hints
        The phase counts only where the file does not say it; the size goes before
        what rate and duration make.

    Raises
    ------
    UsageError
        If there is no result, or what the file or a hint says cannot be.
    """
    path, notes = results.path, list[str]()
    there = [(i, one) for i, one in enumerate(results.timed) if one is not None]
    workload = _phase(results, hints, notes)
    rows, source = _rows(results, there, hints, workload)
    check(path, rows, "result")
    if (strange := _contradictions(there, rows)) > 0:
        notes.append(f"{strange} rates are not bytes over time, by more than 1 %: bytes are taken")
    stats = _aligned(results, there, notes)
    requested = max(results.requested, len(results.timed))
    lost = dict.fromkeys(set(range(requested)) - {i for i, _ in there}, _LOST)
    if requested > len(results.timed):
        notes.append(
            f"{requested} functions were asked for and {len(there)} have a result; which ones,"
            " the file does not say: the last ones are counted as lost"
        )
    created_ns = instant_ns(results.start_s)
    return Imported(
        tool=results.tool,
        path=path,
        workload=workload,
        calls=tuple(_call(i, stats.get(i, {}), results.names) for i, _ in there),
        lost=lost,
        rows=rows,
        concurrency=requested,
        created_ns=min(rows.start_ns) if created_ns is None else created_ns,
        bucket=results.bucket if isinstance(results.bucket, str) else "",
        remarks={"bytes": source, "worker_times": bool(stats)},
        notes=tuple(notes),
    )


def _phase(results: Results, hints: Hints, notes: list[str]) -> str:
    if not any(one is not None and one.size_bytes is not None for one in results.timed):
        if hints.phase is None:
            notes.append("taken for writes, as there are no bytes; --phase read if they were reads")
        return hints.phase or "write"
    if hints.phase == "write":
        raise UsageError(
            f"{results.path} has the bytes that were read: these are no writes",
            hint="leave --phase away",
        )
    return "read"


def _rows(
    results: Results, there: Sequence[tuple[int, Timed]], hints: Hints, workload: str
) -> tuple[Rows, str]:
    """Return the operations, and where their bytes are from."""
    rows, sources = Rows(), set[str]()
    keys = results.keys if len(results.keys) == len(results.timed) else ()
    for index, one in there:
        size, source = _size(one, hints)
        if size > MAX_OPERATION_BYTES:
            refuse(results.path, f"result {index} moves more bytes than any object has")
        sources.add(source)
        row = {
            "function": index,
            "line": index,
            "kind": GET if workload == "read" else PUT,
            "start_ns": one.start_ns,
            "end_ns": one.end_ns,
            "first_byte_ns": ABSENT,
            "last_byte_ns": ABSENT,
            "size_bytes": size,
            "key": plain_key(keys[index]) if keys else "",
            "error": None,
            "detail": None,
        }
        for name, value in row.items():
            getattr(rows, name).append(value)
    return rows, "; ".join(sorted(sources))


def _size(one: Timed, hints: Hints) -> tuple[int, str]:
    if one.size_bytes is not None:
        return one.size_bytes, "as recorded"
    if hints.size_bytes is not None:
        return hints.size_bytes, "--size"
    size = one.mb_per_s * 1e6 * one.duration_s
    # Infinite if the rate is absurd; more than any object, in any case.
    return round(min(size, 2.0 * MAX_OPERATION_BYTES)), "rate times duration, rounded"


def _contradictions(there: Sequence[tuple[int, Timed]], rows: Rows) -> int:
    count = 0
    for (_, one), size in zip(there, rows.size_bytes, strict=True):
        expected = one.mb_per_s * 1e6 * one.duration_s
        count += abs(expected - size) > _RATE_SLACK * max(size, 1)
    return count


def _aligned(
    results: Results, there: Sequence[tuple[int, Timed]], notes: list[str]
) -> Mapping[int, Mapping[str, Any]]:
    """Return the statistics by index, if they are of the functions that the results are of.

    A result lies between its function's start and end, on one clock.
    """
    stats = results.stats
    if not stats:
        return {}
    names = results.names
    if len(stats) == len(results.timed):
        found: dict[int, Mapping[str, Any]] = {}
        for index, one in there:
            row = stats[index]
            if not isinstance(row, Mapping):
                break
            start, end = _first(row, names.start), _first(row, names.end)
            if start is None or end is None:
                break
            if start > one.start_ns + _SAME_CLOCK_NS or end < one.end_ns - _SAME_CLOCK_NS:
                break
            found[index] = row
        else:
            return found
    notes.append(
        "the statistics of the workers do not fit the results one by one: submission,"
        " collection and cold starts are left out"
    )
    return {}


def _call(index: int, row: Mapping[str, Any], names: Stats) -> FunctionCall:
    submitted_ns = instant_ns(row.get(names.submitted))
    collected_ns = instant_ns(row.get(names.collected)) if names.collected else None
    if submitted_ns is None or collected_ns is None or collected_ns < submitted_ns:
        submitted_ns = collected_ns = None
    entry, value = names.is_cold
    return FunctionCall(
        index=index,
        # Two functions of unknown environments must not look like one environment.
        worker_id=f"unknown-{index}",
        cold_start=row.get(entry) is value,
        submitted_ns=submitted_ns,
        collected_ns=collected_ns,
        start_ns=_first(row, names.start),
        end_ns=_first(row, names.end),
    )


def _first(row: Mapping[str, Any], names: Sequence[str]) -> int | None:
    found = (instant_ns(row.get(name)) for name in names)
    return next((ns for ns in found if ns is not None), None)


def sequence(path: Path, data: Mapping[str, object], name: str) -> Sequence[object]:
    """Return a list of a pickle's dict; empty if it has none.

    Raises
    ------
    UsageError
        If it is there and no list.
    """
    value = data.get(name)
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        refuse(path, f"{name} is no list")
    return value
