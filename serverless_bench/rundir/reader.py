"""Convert the lines of ``records.jsonl`` into tables of columns.

No object is created per row: a million operations would take 1.8 GiB as objects.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, get_type_hints

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from serverless_bench.base.errors import one_line
from serverless_bench.job.workload import MAX_DUE
from serverless_bench.rundir.columns import BlockStore, TableBuilder
from serverless_bench.rundir.planned import Plan
from serverless_bench.rundir.received import outcome_type, tables_of
from serverless_bench.rundir.record import TABLES, InvocationRecord, Lost
from serverless_bench.rundir.rows import Columns
from serverless_bench.rundir.schema import (
    Counts,
    End,
    Neighbours,
    Stability,
    Stopped,
    WaveLine,
    check,
)
from serverless_bench.rundir.tables import ABSENT, Table

_FUNCTION_COLUMNS: Final[Mapping[str, object]] = {
    "submitted_ns": int | None,
    "collected_ns": int | None,
    "refusals": int,
    "lost": bool,
    "not_started": bool,
    "deviation": str | None,
    # Most fields of a lost function are unknown.
    **{name: kind | None for name, kind in get_type_hints(InvocationRecord).items()},
    "index": int,
    "launch": int,
}
_TABLE_COLUMNS: Final = {
    name: {"function": int, **get_type_hints(row_type)} for name, row_type in TABLES.items()
}
_MAX_PROBLEMS: Final = 5
_MAX_PROBLEM: Final = 200


_BLANK: Final = {
    **dict.fromkeys(name for name in _FUNCTION_COLUMNS if name not in TABLES),
    **dict.fromkeys(("cold_start", "cpu_sys_s", "cpu_user_s", "max_rss_bytes"), 0),
    **dict.fromkeys(("duplicate", "lost", "not_started", "refusals"), 0),
}
"""A row of ``functions`` in which all values are unknown."""
_FIELDS: Final = tuple(f.name for f in fields(InvocationRecord) if f.name not in TABLES)
_FIELDS_OF_LOST: Final = tuple(f.name for f in fields(Lost) if f.name != "cause")

_SIGNS: Final = frozenset({"alive", "cleaning", "end", "resumed", "suspended", "wave"})
"""Names of lines that do not describe a function."""
_WITH_KEYS: Final = frozenset({"accesses", "bad_ranges"})
"""Tables with keys that are needed in reports, because reports describe single keys there."""


class RecordReader:
    """Collects any number of lines, and provides them as tables.

    Parameters
    ----------
    planned
        Number of invocations of the run.
    skip
        Text columns to leave out.
    plan
        Plan against which functions are checked; None if it is unknown.
    """

    def __init__(self, planned: int, skip: frozenset[str], plan: Plan | None = None) -> None:
        self._planned = planned
        self._plan = plan
        store = BlockStore()
        self.functions = TableBuilder(
            {name: _FUNCTION_COLUMNS[name] for name in _BLANK}, skip, store
        )
        self.tables = {
            name: TableBuilder(columns, frozenset() if name in _WITH_KEYS else skip, store)
            for name, columns in _TABLE_COLUMNS.items()
        }
        self._rows = 0
        self.end: Mapping[str, Any] = {}
        self.ended = False
        self.killed: list[tuple[int, int]] = []
        self.stability: Stability | None = None
        self.neighbours: Neighbours | None = None
        self.stopped: Stopped | None = None
        self.waves: list[WaveLine] = []
        self.stages: list[Mapping[str, Any]] = []
        """Lines of waves and ends in their original form."""
        self.cleaning_ns: int | None = None
        self.downtimes: list[tuple[int, int]] = []
        self.suspensions: list[tuple[int, int]] = []
        self._seen_ns = self._started = 0
        self.skipped = 0
        self.problems: list[str] = []
        """Positions and errors of the first skipped lines."""
        self._line = 0

    def read(self, lines: Iterable[bytes]) -> None:
        """Read lines; unreadable lines are counted."""
        for line in lines:
            self._line += 1
            try:
                self._take(line)
            except (KeyError, TypeError, ValueError) as exc:
                self.skipped += 1
                if len(self.problems) < _MAX_PROBLEMS:
                    problem = f"lacks {exc}" if isinstance(exc, KeyError) else f"is skipped: {exc}"
                    self.problems.append(
                        f"records.jsonl, line {self._line} {one_line(problem[:_MAX_PROBLEM])}"
                    )

    def _take(self, line: bytes) -> None:
        if check(line, dict[str, msgspec.Raw], msgspec.json.decode).keys().isdisjoint(_SIGNS):
            self._take_outcome(check(line, outcome_type(), msgspec.json.decode))
        else:
            self._take_sign(orjson.loads(line))

    def _take_sign(self, data: Mapping[str, Any]) -> None:
        """Process a line that a driver wrote about itself."""
        if "end" in data:
            end = check(data["end"], End)
            self.end = _merged_end(self.end, data["end"])
            self.stability = end.stability or self.stability
            self.neighbours = _merged_neighbours(self.neighbours, end.neighbours)
            self.stopped = end.stopped
            self.stages.append(data["end"])
            self._seen(end.ended_ns)
            self.ended = True
        elif "cleaning" in data:
            began_ns = check(data["cleaning"], Counts)["began_ns"]
            self.cleaning_ns = self.cleaning_ns or began_ns
        elif "resumed" in data:
            self._resumed(check(data["resumed"], Counts)["resumed_ns"])
        elif "alive" in data:
            sign = check(data["alive"], Counts)
            self._seen(sign["alive_ns"])
            self._started = sign.get("started", 0)
        elif "suspended" in data:
            suspension = check(data["suspended"], Counts)
            began_ns, ended_ns = suspension["began_ns"], suspension["ended_ns"]
            if began_ns >= ended_ns:
                raise ValueError("the suspension ends before it starts")
            self.suspensions.append((began_ns, ended_ns))
            self._seen(ended_ns)
        else:
            self.waves.append(check(data["wave"], WaveLine))
            self.stages.append(data["wave"])

    def _take_outcome(self, line: Any) -> None:
        is_lost = line.record is None
        result = line.lost if is_lost else line.record
        if result is None:
            raise ValueError("the line has neither a record nor a lost function")
        tables = {} if is_lost else tables_of(result)
        row: dict[str, Any] = {**_BLANK, "lost": is_lost}
        row |= {name: getattr(line, name) for name in ("submitted_ns", "collected_ns", "refusals")}
        row |= {name: getattr(result, name) for name in (_FIELDS_OF_LOST if is_lost else _FIELDS)}
        if is_lost:
            row["error"] = result.cause
        else:
            _check_numbers(tables)
            row["error"] = result.error or next(filter(None, tables["operations"]["error"]), None)
        if row["index"] >= self._planned:
            raise ValueError("no invocation of the run has this index")
        row["deviation"] = self._deviation(row, tables)
        for name, columns in tables.items():
            count = len(next(iter(columns.values())))
            self.tables[name].extend({**columns, "function": [self._rows] * count}, count)
        self.functions.extend({name: [value] for name, value in row.items()}, 1)
        self._rows += 1
        self._seen(row["collected_ns"] or 0)

    def _deviation(self, row: Mapping[str, Any], tables: Mapping[str, Columns]) -> str | None:
        """Return how an ok function differs from the plan; None if unknown or not at all."""
        if self._plan is None or row["lost"] or row["error"] or row["duplicate"]:
            return None
        dropped = bool(tables["dropped"]["count"])
        index, launch, operations = row["index"], row["launch"], tables["operations"]
        return self._plan.deviation(index, launch, operations, dropped=dropped)

    def _seen(self, now_ns: int) -> None:
        """Record a time at which a driver was active."""
        self._seen_ns = max(self._seen_ns, now_ns)

    def finish(self) -> None:
        """Record the last state of a driver that did not exit normally."""
        if not self.ended:
            self.killed.append((self._started, self.waves[-1].number if self.waves else 0))
        self._started = 0

    def _resumed(self, now_ns: int) -> None:
        """Record that a driver resumed the run."""
        self.finish()
        if 0 < self._seen_ns < now_ns:
            self.downtimes.append((self._seen_ns, now_ns))
        self._seen(now_ns)
        self.ended = False


def _check_numbers(tables: Mapping[str, Columns]) -> None:
    """Reject a record with inconsistent numbers, because the analysis relies on them."""
    index, dropped = tables["operations"]["index"], tables["dropped"]["count"]
    if index != list(range(len(index))):
        raise ValueError("operations are not numbered from 0")
    if 0 in dropped or sum(dropped) > MAX_DUE:
        raise ValueError("the numbers of dropped operations are out of range")


def with_status(received: Table, planned: int) -> Table:
    """Give each planned invocation one row that counts, and mark additional rows as duplicates.

    If an index has multiple records, the first successful record counts, or else the first. A
    loss only counts if no record arrived; an index without any line is lost, too. The record of
    a delivery that found its launch claimed never counts.
    """
    count = len(received["index"])
    failed = np.array([error is not None for error in received["error"]], dtype=bool)
    lost = received["lost"].astype(bool)
    rank = np.where(lost, 2, failed.astype(int))
    rank[received["duplicate"] == 1] = 3
    # The sort is stable, so rows of equal rank stay in order of arrival.
    order = np.lexsort((rank, received["index"]))
    _, first = np.unique(received["index"][order], return_index=True)
    counts = np.zeros(count, dtype=bool)
    counts[order[first]] = True
    counts &= rank < 3
    status = np.array(["ok", "failed", "lost", "duplicate"], dtype=object)[rank]
    status[~counts] = "duplicate"
    status[~counts & lost] = "superseded"
    missing = np.setdiff1d(np.arange(planned), received["index"][counts], assume_unique=True)
    table = {
        name: _padded(column, len(missing)) for name, column in received.items() if name != "lost"
    }
    table["status"] = _padded(status, len(missing))
    if len(missing):
        table["index"][count:] = missing
        table["status"][count:] = "lost"
        table["error"][count:] = "no record: the driver ended before it arrived"
    return table


def _merged_end(before: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the last line plus the requests and probes of earlier drivers."""
    probes_by_name = {
        name: [*before.get(name, ()), *end.get(name, ())] for name in ("probes", "probed")
    }
    joined = {**before, **end, **probes_by_name}
    for name in ("requests", "store_requests"):
        if name in joined:
            joined[name] = Counter(before.get(name, {})) + Counter(end.get(name, {}))
    return joined


def _merged_neighbours(before: Neighbours | None, end: Neighbours | None) -> Neighbours | None:
    """Return the combined values of two drivers of a run."""
    if before is None or end is None:
        return before or end
    commands, shared_s = max(before.commands, end.commands), before.shared_s + end.shared_s
    return Neighbours(commands=commands, shared_s=shared_s)


def _padded(column: NDArray[Any], count: int) -> NDArray[Any]:
    absent = {"O": None, "f": 0.0}.get(column.dtype.kind, ABSENT)
    return np.concatenate([column, np.full(count, absent, dtype=column.dtype)])
