"""The rows of a run directory, read in the plainest way: dictionaries, one per row.

It shares no code with the package: the meaning of lines, the record that counts, the offset of a
clock and the pauses are computed again, from the documents.
"""

import json
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import Any, Final

S: Final = 10**9
Row = dict[str, Any]

_PARTS: Final = ("attempts", "steps", "bad_ranges", "usages", "accesses")
"""Tables whose rows belong to an operation."""
_MOVED: Final = (
    *("start_ns", "end_ns", "first_byte_ns", "last_byte_sent_ns", "answered_ns"),
    *("intended_ns", "first_ns", "last_ns", "until_ns"),
)


@dataclass
class Function:
    """One line about a function, or a function without a line."""

    index: int
    status: str
    error: str | None
    submitted_ns: int | None = None
    collected_ns: int | None = None
    refusals: int = 0
    not_started: bool = False
    record: Row | None = None
    operations: list[Row] = field(default_factory=list)
    """Each with its ``attempts``, ``steps``, ``bad_ranges``, ``usages`` and ``accesses``."""
    launch: int | None = None
    dropped: list[Row] = field(default_factory=list)
    """Instants that came and were left undone."""
    low_ns: int = 0
    high_ns: int = 0
    """The worker's clock minus the driver's lies between these."""
    suspect: bool = False
    known: bool = False
    shift_ns: int = 0

    @property
    def counts(self) -> bool:
        return self.status in {"ok", "failed"}


@dataclass
class Saved:
    """A run directory."""

    header: Row
    functions: list[Function]
    waves: list[Row]
    down: list[tuple[int, int]]
    end: Row
    ended: bool
    skipped: int
    cleaned: bool = False
    pauses: list[tuple[int, int]] = field(default_factory=list)
    slept_ns: int = 0
    killed: list[tuple[int, int]] = field(default_factory=list)
    """Launches and last wave of each driver that did not finish."""
    has_ledger: bool = False
    keys: int = 0
    """Lines of its key file."""

    @property
    def job(self) -> Row:
        job: Row = self.header["job"]
        return job

    @property
    def measured(self) -> list[Row]:
        """The operations of functions that count, without the warm-up."""
        return [op for f in self.functions if f.counts for op in f.operations if not op["warmup"]]

    @property
    def good(self) -> list[Row]:
        """Successful operations among them."""
        return [op for op in self.measured if op["error"] is None]

    @property
    def has_all_requests(self) -> bool:
        """Whether every driver reported its requests at its end."""
        return not self.killed

    @property
    def begun(self) -> list[Row]:
        """The measured operations that were due at an instant."""
        return [op for op in self.measured if op["intended_ns"] is not None]

    @property
    def dropped(self) -> list[tuple[int, int]]:
        """Due times of operations that did not start, and their waits."""
        rows = [row for f in self.functions if f.counts for row in f.dropped]
        found = []
        for row in rows:
            gaps, took = max(1, row["count"] - 1), row["last_ns"] - row["first_ns"]
            for n in range(row["count"]):
                due_ns = row["first_ns"] + floor(Fraction(took * n, gaps) + Fraction(1, 2))
                found.append((due_ns, max(0, row["until_ns"] - due_ns)))
        return found

    def elapsed_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return how long a stretch took without its pauses."""
        taken = end_ns - begin_ns
        for start, stop in self.pauses:
            taken -= max(0, min(stop, end_ns) - max(start, begin_ns))
        return taken

    def span(self) -> tuple[int, int] | None:
        """Return the first start and the last end of the measured operations."""
        mine = self.measured
        if not mine:
            return None
        return min(op["start_ns"] for op in mine), max(op["end_ns"] for op in mine)

    def span_ns(self) -> int:
        """Return the time between them, without the pauses."""
        found = self.span()
        return 0 if found is None else self.elapsed_ns(*found)


def read(path: Path, *, with_warmup: bool = False) -> Saved:
    """Read a run directory, with its workers' instants on the driver's clock."""
    header = json.loads((path / "run.json").read_text())
    lines = (path / "records.jsonl").read_text().splitlines()
    records = [line for line in lines if not line.startswith('{"cleaning":')]
    saved = _lines(header, records)
    saved.keys = len((path / "keys.txt").read_text().splitlines())
    saved.has_ledger = bool((path / "ledger.txt").read_text())
    saved.cleaned = len(records) < len(lines)
    _give_status(saved)
    _find_clocks(saved)
    for one in saved.functions:
        _move(one)
    _find_pauses(saved)
    if with_warmup:
        for one in saved.functions:
            for op in one.operations:
                if op["warmup"]:
                    op["warmup"], op["warmed"] = False, True
                    assert one.record is not None
                    one.record["measured_cpu_ns"] = None
    return saved


def _lines(header: Row, lines: list[str]) -> Saved:
    saved = Saved(header, [], [], [], {}, ended=False, skipped=0)
    driver_ns = started = 0  # last sign of a driver
    for line in lines:
        try:
            data = dict(json.loads(line))
        except (TypeError, ValueError):
            saved.skipped += 1
            continue
        if "end" in data:
            _join(saved.end, data["end"])
            saved.ended = True
            driver_ns = max(driver_ns, data["end"].get("ended_ns", 0))
        elif "wave" in data:
            saved.waves.append(data["wave"])
        elif "resumed" in data:
            driver_ns = _go_on(saved, data["resumed"]["resumed_ns"], driver_ns, started)
            started = 0
        elif "alive" in data:
            driver_ns = max(driver_ns, data["alive"]["alive_ns"])
            started = data["alive"].get("started", 0)
        elif "suspended" in data:
            driver_ns = max(driver_ns, _sleep(saved, data["suspended"]))
        else:
            one = _function(data)
            if not 0 <= one.index < header["job"]["number"]:
                saved.skipped += 1
                continue
            saved.functions.append(one)
            driver_ns = max(driver_ns, data["collected_ns"])
    _leave(saved, started)
    return saved


def _leave(saved: Saved, started: int) -> None:
    """Record the launches of a driver that did not finish."""
    if not saved.ended:
        waves = [wave["number"] for wave in saved.waves]
        saved.killed.append((started, waves[-1] if waves else 0))


def _go_on(saved: Saved, now: int, driver_ns: int, started: int) -> int:
    """Process a resumption, and return the last sign of a driver."""
    _leave(saved, started)
    if 0 < driver_ns < now:
        saved.down.append((driver_ns, now))
    saved.ended = False
    return max(driver_ns, now)


def _sleep(saved: Saved, slept: Row) -> int:
    """Process a suspension of the driver's machine, and return its end."""
    saved.down.append((slept["began_ns"], slept["ended_ns"]))
    saved.slept_ns += slept["ended_ns"] - slept["began_ns"]
    return int(slept["ended_ns"])


def _join(before: Row, end: Row) -> None:
    """Add a driver's report at its end to those before it."""
    probes = [*before.get("probes", []), *end.get("probes", [])]
    counts: dict[str, Row] = {}
    for of in ("requests", "store_requests"):
        found = dict(before.get(of, {}))
        for name, count in end.get(of, {}).items():
            found[name] = found.get(name, 0) + count
        if found:
            counts[of] = {name: count for name, count in found.items() if count}
    shared = [document["neighbours"] for document in (before, end) if document.get("neighbours")]
    before.pop("stopped", None)
    before.update(end)
    before |= {"probes": probes, **counts}
    if shared:
        before["neighbours"] = {
            "commands": max(one["commands"] for one in shared),
            "shared_s": sum(one["shared_s"] for one in shared),
        }


def _function(data: Row) -> Function:
    times = (data["submitted_ns"], data["collected_ns"], data["refusals"])
    if "lost" in data:
        lost = data["lost"]
        one = Function(lost["index"], "lost", lost["cause"], *times, lost["not_started"])
        one.launch = lost["launch"]
        return one
    record = {**data["record"]}
    dropped = _rows(record.pop("dropped"))
    operations = [
        {**row, **{name: [] for name in _PARTS}} for row in _rows(record.pop("operations"))
    ]
    for name in _PARTS:
        for row in _rows(record.pop(name)):
            operations[row["operation"]][name].append(row)
    errors = [op["error"] for op in operations if op["error"] is not None]
    error = record["error"] if record["error"] is not None else (errors[0] if errors else None)
    status = "ok" if error is None else "failed"
    one = Function(record["index"], status, error, *times, record=record, operations=operations)
    for op in operations:
        op["of"] = one
    one.launch, one.dropped = record["launch"], dropped
    return one


def _rows(columns: Row) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _give_status(saved: Saved) -> None:
    """Select the line that counts for each function, and add the functions without any."""
    for index in range(saved.job["number"]):
        mine = [one for one in saved.functions if one.index == index]
        real = [one for one in mine if one.record and not one.record["duplicate"]]
        chosen = next((one for one in real if one.status == "ok"), None)
        if chosen is None and real:
            chosen = real[0]
        if chosen is None:
            chosen = next((one for one in mine if one.status == "lost"), None)
        for one in mine:
            if one is not chosen:
                one.status = "superseded" if one.record is None else "duplicate"
        if chosen is None:
            why = "no record: the driver ended before it arrived"
            saved.functions.append(Function(index, "lost", why))


def _find_clocks(saved: Saved) -> None:
    store = None
    if saved.end.get("probes"):
        low = max(sent - (date + 1) * S for sent, _, date in saved.end["probes"])
        high = min(received - date * S for _, received, date in saved.end["probes"])
        store = (low, high) if low <= high else None
    for one in saved.functions:
        if one.record is not None:
            _find_clock(one, one.record, store)
    _trust_here(saved)
    sure = [one for one in saved.functions if one.known and not one.suspect]
    own = [(one.low_ns, one.high_ns) for one in sure]
    for one in sure:
        # All functions of one worker had one clock, unless it was set in between.
        name = one.record and one.record["worker_id"]
        pairs = zip(sure, own, strict=True)
        same = [pair for other, pair in pairs if other.record and other.record["worker_id"] == name]
        low, high = max(low for low, _ in same), min(high for _, high in same)
        if low <= high:
            one.low_ns, one.high_ns = low, high
    for one in sure:
        if not one.low_ns <= 0 <= one.high_ns:
            one.shift_ns = one.low_ns + (one.high_ns - one.low_ns) // 2


def _trust_here(saved: Saved) -> None:
    if saved.job.get("control") is None:
        for one in (one for one in saved.functions if one.suspect):
            one.suspect, one.low_ns, one.high_ns = False, 0, 0


def _find_clock(one: Function, record: Row, store: tuple[int, int] | None) -> None:
    assert one.submitted_ns is not None
    assert one.collected_ns is not None
    one.known = True
    one.low_ns = record["end_ns"] - one.collected_ns
    one.high_ns = record["start_ns"] - one.submitted_ns
    for tried in [tried for op in one.operations for tried in op["attempts"]]:
        if store and tried["date_s"] is not None and tried["answered_ns"] is not None:
            date_ns = tried["date_s"] * S
            one.low_ns = max(one.low_ns, tried["start_ns"] - date_ns - S - store[1])
            one.high_ns = min(one.high_ns, tried["answered_ns"] - date_ns - store[0])
    passed = record["end_ns"] - record["start_ns"]
    stepped = abs(record["wall_end_ns"] - record["wall_start_ns"] - passed) > S // 10
    one.suspect = one.low_ns > one.high_ns or (stepped and record["wall_start_ns"] > 0)


def _move(one: Function) -> None:
    """Put the instants of a function on the driver's clock."""
    rows = [one.record] if one.record else []
    rows += one.dropped
    for op in one.operations:
        rows += [op, *op["attempts"]]
    for row in rows:
        own = ("start_ns", "end_ns", "born_ns")
        names = own if row is one.record else _MOVED
        for name in names:
            if row.get(name) is not None:
                row[name] -= one.shift_ns


def _find_pauses(saved: Saved) -> None:
    """Find the times without a driver and without an active function that left a record."""
    at_work = [(f.record["start_ns"], f.record["end_ns"]) for f in saved.functions if f.record]
    for down_ns, up_ns in saved.down:
        edges = {down_ns, up_ns}
        for begin, end in at_work:
            edges |= {at for at in (begin, end) if down_ns < at < up_ns}
        ordered = sorted(edges)
        for begin, end in pairwise(ordered):
            if not any(start < end and stop > begin for start, stop in at_work):
                saved.pauses.append((begin, end))
