"""Common part of PyWren's and Lithops' pickles: a timed result per function."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.formats.importers.base import (
    GET,
    MAX_FUNCTIONS,
    MAX_INSTANT_S,
    MAX_OPERATION_BYTES,
    PUT,
    FunctionCall,
    Hints,
    Imported,
    ImportedRows,
    PickledData,
    check,
    instant_ns,
    plain_key,
    plain_text,
    refuse,
)
from serverless_bench.rundir.tables import ABSENT

_SAME_CLOCK_NS: Final = 10_000_000
"""Tolerance between worker and result times of the same clock; floats are off by less than 1 us."""
_MAX_MB_PER_S: Final = 1e9
_RATE_SLACK: Final = 0.01
_MAX_BUCKET: Final = 255
"""S3 accepts 63 characters; older buckets have up to 255."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Names of the entries of a tool's pickle; None for missing entries."""

    tool: str
    values: Callable[[Path, int, object], Sequence[object]]
    """Function that returns start, stop, rate and bytes (or None) of a result, or rejects it."""
    stats: tuple[str, ...]
    """Lists with the statistics of each function, of which the first present applies."""
    lists: tuple[str, ...]
    """Further lists with an entry per function: the keys, and more."""
    begun: str | None
    submitted: tuple[str, ...]
    """This and the following are entries of the statistics of a function call: names of which the
    first present applies."""
    collected: tuple[str, ...]
    start: tuple[str, ...]
    end: tuple[str, ...]
    is_cold: tuple[str, bool]
    """Entry, and the value after a cold start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """Measurement of a function."""

    start_ns: int
    end_ns: int
    duration_s: float
    """Difference of the file's seconds, from which the rate was computed."""
    mb_per_s: float
    """Rate in 10**6 bytes per second."""
    size_bytes: int | None
    """Bytes; None if the file has none."""

    @property
    def expected_bytes(self) -> float:
        """Bytes according to rate and duration."""
        return self.mb_per_s * 1e6 * self.duration_s


def imported_from(layout: Layout, content: PickledData, hints: Hints) -> Imported:
    """Return results as function calls with one operation each.

    Parameters
    ----------
    layout
        Layout of the tool's pickles.
    content
        Content of a pickle.
    hints
        The phase is used only if the file does not contain it; the size has precedence over
        rate times duration.

    Raises
    ------
    UsageError
        If there is no result, or the file or a hint is invalid.
    """
    path, notes = content.path, list[str]()
    data = content.value if isinstance(content.value, Mapping) else {"results": content.value}
    results = _list(path, data, "results")
    stats = next(filter(None, (_list(path, data, name) for name in layout.stats)), ())
    keys, *others = (_list(path, data, name) for name in layout.lists)
    requested = max(map(len, (results, stats, keys, *others)))
    _check_results(path, results, requested)
    timed_by_index = {
        i: _timed(path, i, layout.values(path, i, result))
        for i, result in enumerate(results)
        if result is not None
    }
    workload = _phase(path, timed_by_index, hints, notes)
    rows, source = _rows(
        path, timed_by_index, hints, workload, keys if len(keys) == len(results) else ()
    )
    check(path, rows, "result")
    notes += _strange_rates(timed_by_index.values(), rows.size_bytes)
    stats_match = _fit(stats, len(results), timed_by_index, layout)
    if stats and not stats_match:
        notes.append(
            "the statistics of the workers do not match the results: submission,"
            " collection and cold starts are dropped"
        )
    if requested > len(results):
        notes.append(
            f"{requested} functions were requested and {len(timed_by_index)} have a result;"
            " the file does not identify them, so the last ones are counted as lost"
        )
    created_ns = instant_ns(data.get(layout.begun) if layout.begun else None)
    return Imported(
        tool=layout.tool,
        path=path,
        workload=workload,
        calls=tuple(_call(i, stats[i] if stats_match else {}, layout) for i in timed_by_index),
        lost=dict.fromkeys(set(range(requested)) - set(timed_by_index), "no result in the file"),
        rows=rows,
        concurrency=requested,
        created_ns=min(rows.start_ns) if created_ns is None else created_ns,
        bucket=plain_text(data.get("bucket_name"), _MAX_BUCKET),
        remarks={"bytes": source, "worker_times": stats_match},
        notes=tuple(notes),
    )


def _check_results(path: Path, results: Sequence[Any], requested: int) -> None:
    """Check the number of functions, and that no result object belongs to two of them."""
    if requested > MAX_FUNCTIONS:
        refuse(path, f"it has {requested} functions, at most {MAX_FUNCTIONS} are possible")
    distinct = len({id(result) for result in results if result is not None})
    if distinct < sum(result is not None for result in results):
        # A pickle can repeat an object with two bytes; two functions never have the same result.
        refuse(path, "more than one function has the same result object")


def _list(path: Path, data: Mapping[Any, Any], name: str) -> Sequence[Any]:
    """Return a list of a pickle's dict; empty if it is missing."""
    value = data.get(name)
    if not isinstance(value, list | tuple | None):
        refuse(path, f"{name} is not a list")
    return value or ()


def _timed(path: Path, number: int, values: Sequence[object]) -> _Timed:
    """Return a result from its start, stop, rate and bytes, which may be None."""

    def number_of(quantity: str, value: object, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            refuse(path, f"result {number} has an invalid {quantity}")
        return float(value)

    start, stop, rate, size = values
    start_s = number_of("start", start, MAX_INSTANT_S)
    stop_s = number_of("end", stop, MAX_INSTANT_S)
    if stop_s < start_s:
        refuse(path, f"result {number} ends before it starts")
    return _Timed(
        start_ns=round(start_s * NS_PER_S),
        end_ns=round(stop_s * NS_PER_S),
        duration_s=stop_s - start_s,
        mb_per_s=number_of("rate", rate, _MAX_MB_PER_S),
        size_bytes=None
        if size is None
        else round(number_of("number of bytes", size, MAX_OPERATION_BYTES)),
    )


def _phase(path: Path, timed_by_index: Mapping[int, _Timed], hints: Hints, notes: list[str]) -> str:
    if all(timed.size_bytes is None for timed in timed_by_index.values()):
        if hints.phase is None:
            notes.append("assumed to be writes, as there are no bytes; give --phase read for reads")
        return hints.phase or "write"
    if hints.phase == "write":
        raise UsageError(
            f"{path} has the bytes that were read, so these are not writes", hint="omit --phase"
        )
    return "read"


def _rows(
    path: Path,
    timed_by_index: Mapping[int, _Timed],
    hints: Hints,
    workload: str,
    keys: Sequence[object],
) -> tuple[ImportedRows, str]:
    """Return the operations, and the origin of the bytes."""
    rows, sources = ImportedRows(), set[str]()
    for index, timed in timed_by_index.items():
        size, source = _size(timed, hints)
        if size > MAX_OPERATION_BYTES:
            refuse(path, f"result {index} moves more bytes than any object has")
        sources.add(source)
        rows.add(
            function=index,
            line=index,
            kind=GET if workload == "read" else PUT,
            start_ns=timed.start_ns,
            end_ns=timed.end_ns,
            first_byte_ns=ABSENT,
            last_byte_ns=ABSENT,
            size_bytes=size,
            count=1,
            warmup=0,
            key=plain_key(keys[index]) if keys else "",
            error=None,
            detail=None,
        )
    return rows, "; ".join(sorted(sources))


def _strange_rates(timed: Iterable[_Timed], sizes: Iterable[int]) -> Iterator[str]:
    """Yield a note if rates differ from bytes over time."""
    pairs = zip(timed, sizes, strict=True)
    strange = sum(
        abs(timed_call.expected_bytes - n) > _RATE_SLACK * max(n, 1) for timed_call, n in pairs
    )
    if strange:
        yield f"{strange} rates differ from bytes over time by more than 1 %: the bytes are used"


def _size(timed: _Timed, hints: Hints) -> tuple[int, str]:
    if timed.size_bytes is not None:
        return timed.size_bytes, "as recorded"
    if hints.size_bytes is not None:
        return hints.size_bytes, "--size"
    # An absurd rate makes this infinite; the limit exceeds any object in all cases.
    size = min(timed.expected_bytes, 2.0 * MAX_OPERATION_BYTES)
    return round(size), "rate times duration, rounded"


def _fit(
    stats: Sequence[Any], count: int, timed_by_index: Mapping[int, _Timed], layout: Layout
) -> bool:
    """Return whether the statistics and the results concern the same functions.

    A result lies between its function's start and end, on the same clock.
    """
    if len(stats) != count:
        return False
    for index, timed in timed_by_index.items():
        if not isinstance(stats[index], Mapping):
            return False
        start, end = (_first(stats[index], names) for names in (layout.start, layout.end))
        if start is None or end is None:
            return False
        if start > timed.start_ns + _SAME_CLOCK_NS or end < timed.end_ns - _SAME_CLOCK_NS:
            return False
    return True


def _call(index: int, row: Mapping[str, Any], layout: Layout) -> FunctionCall:
    submitted_ns, collected_ns = (
        _first(row, names) for names in (layout.submitted, layout.collected)
    )
    if submitted_ns is None or collected_ns is None or collected_ns < submitted_ns:
        submitted_ns = collected_ns = ABSENT
    entry, value = layout.is_cold
    return FunctionCall(
        index=index,
        # Two functions of unknown environments must not appear to share an environment.
        worker_id=f"unknown-{index}",
        cold_start=row.get(entry) is value,
        submitted_ns=submitted_ns,
        collected_ns=collected_ns,
        start_ns=_first(row, layout.start),
        end_ns=_first(row, layout.end),
    )


def _first(row: Mapping[str, Any], names: Sequence[str]) -> int | None:
    instants = (instant_ns(row.get(name)) for name in names)
    return next((ns for ns in instants if ns is not None), None)
