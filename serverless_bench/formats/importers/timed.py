"""What PyWren's and Lithops' pickles have in common: one timed result per function."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serverless_bench.errors import UsageError
from serverless_bench.formats.importers.base import (
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
from serverless_bench.units import NS_PER_S

_SAME_CLOCK_NS: Final = 10_000_000
"""Worker and result times are of one clock; floats of seconds are off by less than 1 us."""
_MAX_MB_PER_S: Final = 1e9
_RATE_SLACK: Final = 0.01
_MAX_BUCKET: Final = 255
"""S3 takes 63; older buckets have up to 255."""
_LOST: Final = "no result in the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one tool's pickle has what; None for what it lacks."""

    tool: str
    values: Callable[[Path, int, object], Sequence[object]]
    """Return start, stop, rate and bytes (or None) of a result; refuse what is none."""
    lists: tuple[str, ...]
    """With an entry per function: the statistics, the keys, and others."""
    begun: str | None
    submitted: str
    """This and what follows are entries of the statistics of a function call."""
    collected: str | None
    start: tuple[str, ...]
    """The first of these that is there."""
    end: tuple[str, ...]
    is_cold: tuple[str, bool]
    """Which entry has which value after a cold start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """What one function measured."""

    start_ns: int
    end_ns: int
    duration_s: float
    """The difference of the file's seconds, which its rate was made with."""
    mb_per_s: float
    """10**6 bytes per second."""
    size_bytes: int | None
    """None if the file has none."""

    @property
    def expected_bytes(self) -> float:
        """What its rate and duration make."""
        return self.mb_per_s * 1e6 * self.duration_s


def imported_from(layout: Layout, content: PickledData, hints: Hints) -> Imported:
    """Return results as function calls with one operation each.

    Parameters
    ----------
    layout
        Of the tool's pickles.
    content
        One of them.
    hints
        The phase counts only where the file does not say it; the size goes before
        what rate and duration make.

    Raises
    ------
    UsageError
        If there is no result, or what the file or a hint says cannot be.
    """
    path, notes = content.path, list[str]()
    data = content.value if isinstance(content.value, Mapping) else {"results": content.value}
    results = _list(path, data, "results")
    stats, keys, *others = (_list(path, data, name) for name in layout.lists)
    requested = max(map(len, (results, stats, keys, *others)))
    _check_results(path, results, requested)
    there = {
        i: _timed(path, i, layout.values(path, i, one))
        for i, one in enumerate(results)
        if one is not None
    }
    workload = _phase(path, there, hints, notes)
    rows, source = _rows(path, there, hints, workload, keys if len(keys) == len(results) else ())
    check(path, rows, "result")
    notes += _strange_rates(there.values(), rows.size_bytes)
    is_told = _fit(stats, len(results), there, layout)
    if stats and not is_told:
        notes.append(
            "the statistics of the workers do not fit the results one by one: submission,"
            " collection and cold starts are left out"
        )
    if requested > len(results):
        notes.append(
            f"{requested} functions were asked for and {len(there)} have a result; which ones,"
            " the file does not say: the last ones are counted as lost"
        )
    created_ns = instant_ns(data.get(layout.begun) if layout.begun else None)
    return Imported(
        tool=layout.tool,
        path=path,
        workload=workload,
        calls=tuple(_call(i, stats[i] if is_told else {}, layout) for i in there),
        lost=dict.fromkeys(set(range(requested)) - set(there), _LOST),
        rows=rows,
        concurrency=requested,
        created_ns=min(rows.start_ns) if created_ns is None else created_ns,
        bucket=plain_text(data.get("bucket_name"), _MAX_BUCKET),
        remarks={"bytes": source, "worker_times": is_told},
        notes=tuple(notes),
    )


def _check_results(path: Path, results: Sequence[Any], requested: int) -> None:
    """Refuse more functions than there can be, and several that are one."""
    if requested > MAX_FUNCTIONS:
        refuse(path, f"it has {requested} functions, at most {MAX_FUNCTIONS} are possible")
    different = len({id(one) for one in results if one is not None})
    if different < sum(one is not None for one in results):
        # With two bytes a pickle says the same again; no two functions have one result.
        refuse(path, "several functions have the very same result")


def _list(path: Path, data: Mapping[Any, Any], name: str) -> Sequence[Any]:
    """Return a list of a pickle's dict; empty if it has none."""
    value = data.get(name)
    if not isinstance(value, list | tuple | None):
        refuse(path, f"{name} is no list")
    return value or ()


def _timed(path: Path, number: int, values: Sequence[object]) -> _Timed:
    """Return a result from its start, stop, rate and bytes, which may be None."""

    def number_of(what: str, value: object, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            refuse(path, f"result {number} has no {what} that can be")
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


def _phase(path: Path, there: Mapping[int, _Timed], hints: Hints, notes: list[str]) -> str:
    if all(one.size_bytes is None for one in there.values()):
        if hints.phase is None:
            notes.append("taken for writes, as there are no bytes; --phase read if they were reads")
        return hints.phase or "write"
    if hints.phase == "write":
        raise UsageError(
            f"{path} has the bytes that were read: these are no writes", hint="leave --phase away"
        )
    return "read"


def _rows(
    path: Path, there: Mapping[int, _Timed], hints: Hints, workload: str, keys: Sequence[object]
) -> tuple[ImportedRows, str]:
    """Return the operations, and where their bytes are from."""
    rows, sources = ImportedRows(), set[str]()
    for index, one in there.items():
        size, source = _size(one, hints)
        if size > MAX_OPERATION_BYTES:
            refuse(path, f"result {index} moves more bytes than any object has")
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


def _strange_rates(timed: Iterable[_Timed], sizes: Iterable[int]) -> Iterator[str]:
    """Yield a note if rates are not what bytes and time make."""
    each = zip(timed, sizes, strict=True)
    strange = sum(abs(one.expected_bytes - n) > _RATE_SLACK * max(n, 1) for one, n in each)
    if strange:
        yield f"{strange} rates are not bytes over time, by more than 1 %: bytes are taken"


def _size(one: _Timed, hints: Hints) -> tuple[int, str]:
    if one.size_bytes is not None:
        return one.size_bytes, "as recorded"
    if hints.size_bytes is not None:
        return hints.size_bytes, "--size"
    # Infinite if the rate is absurd; more than any object, in any case.
    size = min(one.expected_bytes, 2.0 * MAX_OPERATION_BYTES)
    return round(size), "rate times duration, rounded"


def _fit(stats: Sequence[Any], count: int, there: Mapping[int, _Timed], layout: Layout) -> bool:
    """Return whether the statistics are of the functions that the results are of.

    A result lies between its function's start and end, on one clock.
    """
    if len(stats) != count:
        return False
    for index, one in there.items():
        if not isinstance(stats[index], Mapping):
            return False
        start, end = (_first(stats[index], names) for names in (layout.start, layout.end))
        if start is None or end is None:
            return False
        if start > one.start_ns + _SAME_CLOCK_NS or end < one.end_ns - _SAME_CLOCK_NS:
            return False
    return True


def _call(index: int, row: Mapping[str, Any], layout: Layout) -> FunctionCall:
    submitted_ns, collected_ns = (
        instant_ns(row.get(name)) if name else None for name in (layout.submitted, layout.collected)
    )
    if submitted_ns is None or collected_ns is None or collected_ns < submitted_ns:
        submitted_ns = collected_ns = ABSENT
    entry, value = layout.is_cold
    return FunctionCall(
        index=index,
        # Two functions of unknown environments must not look like one environment.
        worker_id=f"unknown-{index}",
        cold_start=row.get(entry) is value,
        submitted_ns=submitted_ns,
        collected_ns=collected_ns,
        start_ns=_first(row, layout.start),
        end_ns=_first(row, layout.end),
    )


def _first(row: Mapping[str, Any], names: Sequence[str]) -> int | None:
    found = (instant_ns(row.get(name)) for name in names)
    return next((ns for ns in found if ns is not None), None)
