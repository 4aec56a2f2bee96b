"""Both sides of an audit as they are: what a run says about itself, and what the store saw."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serverless_bench.errors import ArchiveError, UsageError
from serverless_bench.lab.loopback.witness import FORMAT, INSTANTS, StoreRequest
from serverless_bench.rundir.files import open_file

Row = Mapping[str, Any]
"""One row of a table of a record."""

_NO_TOKEN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SIZE: Final = re.compile(r"[0-9a-f]{32}\.([0-9]+)(?:\.[zd][0-9zd]+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFunction:
    """One function that left a record."""

    index: int
    launch: int
    worker: str
    """As it calls itself in its user agent."""
    start_ns: int
    end_ns: int
    error: str | None
    duplicate: bool
    operations: Sequence[Row]
    attempts: Mapping[int, Sequence[Row]]
    """Attempts, by the number of their operation."""
    overdue: Sequence[Row]
    """What was due in an open loop and never began."""

    @property
    def where(self) -> str:
        """Return its name in a sentence."""
        again = f" (launch {self.launch})" if self.launch else ""
        return f"function {self.index}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """One run."""

    run_id: str
    created_ns: int
    job: Mapping[str, Any]
    load: Mapping[str, Any]
    """What its operations are like."""
    exact: bool
    """Whether every request of the client is an attempt in a record."""
    polled: bool
    """Whether workers looked for events by themselves, and may have claimed the same event."""
    functions: Sequence[ReportedFunction]
    lost: int
    """Functions that left no record; they may have made requests."""
    again: bool
    """Whether some were launched again."""
    resumed: bool
    """Whether a driver went on with what another one had begun."""
    ended: bool
    """Whether the driver came to its end."""
    last_ns: int
    """When the last outcome was there."""
    probes: Sequence[Sequence[int]]
    """The driver's looks at the store's clock: sent, received, the store's time."""
    probed: bool
    """Whether its functions were asked before it what they are, and may do."""
    asked_again: Sequence[tuple[int, int]]
    """When they may have been asked that again: from the last outcome of what other drivers
    had launched until the first launch of one that goes on with the run, or until its end if it
    launched nothing then."""
    keys: Sequence[str]
    ledger: frozenset[str]

    @property
    def operations(self) -> Iterator[Row]:
        """Operations of all functions."""
        return (op for function in self.functions for op in function.operations)

    @property
    def complete(self) -> bool:
        """Whether everything of the job was done, once, and without a failure."""
        clean = all(function.error is None for function in self.functions)
        clean &= all(op["error"] is None for op in self.operations)
        indexes = sorted(function.index for function in self.functions)
        once = indexes == list(range(self.job["number"])) and not self.again
        return self.ended and not self.resumed and clean and once and not self.lost


def read_reported_run(path: Path) -> ReportedRun:
    """Return what a run directory says.

    Raises
    ------
    ArchiveError
        If it is none.
    """
    try:
        with open_file(path / "run.json") as file:
            header = json.loads(file.read())
        rows = list(_rows(path / "records.jsonl"))
        ended = [row["end"] for row in rows if "end" in row]
        functions = [_function(row["record"]) for row in rows if row.get("record")]
        collected = [row["collected_ns"] for row in rows if "collected_ns" in row]
        # Of one that was launched again only the last word counts.
        recorded = {function.index for function in functions}
        lost = {row["lost"]["index"] for row in rows if row.get("lost")}
        silent = set(range(header["job"]["number"])) - recorded
        return ReportedRun(
            run_id=header["run_id"],
            created_ns=header["created_ns"],
            job=header["job"],
            load=header["job"]["load"],
            exact=header["provenance"].get("client", {}).get("attempts") == "exact",
            polled=bool(header["provenance"].get("polled")),
            functions=functions,
            lost=len(lost | silent),
            again=any("wave" in row for row in rows),
            resumed=any("resumed" in row for row in rows),
            ended=bool(ended),
            last_ns=max(collected, default=header["created_ns"]),
            probes=[probe for end in ended for probe in end.get("probes", ())],
            probed=bool(header.get("probe")),
            asked_again=list(_asked_again(rows)),
            keys=_lines(path / "keys.txt"),
            ledger=frozenset(_lines(path / "ledger.txt")),
        )
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ArchiveError(f"{path} holds no run: {type(exc).__name__}: {exc}") from exc


def _asked_again(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    since: int | None = None
    for row in rows:
        if "resumed" in row:
            since = row["resumed"]["resumed_ns"]
        elif since is not None and "wave" in row:
            yield since, row["wave"]["created_ns"]
            since = None
        elif since is not None and row.get("end", {}).get("probed"):
            yield since, row["end"]["ended_ns"]
            since = None
        elif since is not None:
            since = max(since, row.get("collected_ns", 0))


def declared_size(key: str) -> int | None:
    """Return the bytes that a key says its object has; None if it does not."""
    found = _SIZE.search(key)
    return int(found[1]) if found else None


def _function(record: Mapping[str, Any]) -> ReportedFunction:
    attempts: dict[int, list[Row]] = {}
    for attempt in _table(record["attempts"]):
        attempts.setdefault(attempt["operation"], []).append(attempt)
    return ReportedFunction(
        index=record["index"],
        launch=record["launch"],
        worker=_NO_TOKEN.sub(".", record["worker_id"]),
        start_ns=record["start_ns"],
        end_ns=record["end_ns"],
        error=record["error"],
        duplicate=record["duplicate"],
        operations=_table(record["operations"]),
        attempts=attempts,
        overdue=_table(record["overdue"]),
    )


def _table(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with open_file(path) as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _lines(path: Path) -> list[str]:
    # Half a line was cut off: it is nobody's key.
    if not path.exists():
        return []
    with open_file(path) as file:
        return [line.decode() for line in file.read().split(b"\n")[:-1] if line]


def by_key(requests: Iterable[StoreRequest]) -> dict[str, list[StoreRequest]]:
    """Return requests by the key that they are for."""
    found: dict[str, list[StoreRequest]] = {}
    for one in requests:
        found.setdefault(one.key, []).append(one)
    return found


def read_witness(path: Path) -> list[StoreRequest]:
    """Return every request of a witness's file, in the order in which they came.

    A last line that is cut off is left out: the store may still be at work.

    Raises
    ------
    UsageError
        If the file cannot be read, or is no witness's.
    """
    try:
        with path.open(encoding="ascii") as lines:
            seen = list(_requests(lines))
    except OSError as exc:
        raise UsageError(f"cannot read --witness {path}: {exc.strerror}") from exc
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as exc:
        raise UsageError(
            f"{path} is no witness of a store: {type(exc).__name__}: {exc}",
            hint="sbench serve --witness FILE writes one",
        ) from exc
    return sorted(seen, key=lambda one: one.head_ns)


def _requests(lines: Iterator[str]) -> Iterator[StoreRequest]:
    names: dict[int, str] = {}
    columns: list[str] = []
    waiting: list[list[Any]] = []
    offset_ns: int | None = None
    for line in lines:
        if not line.endswith("\n"):
            break
        row = json.loads(line)
        if isinstance(row, list):
            # The clock line of their own batch comes after the first requests.
            if offset_ns is None:
                waiting.append(row)
            else:
                yield _seen(row, columns, names, offset_ns)
        elif "name" in row:
            number, text = row["name"]
            names[number] = text
        elif "clock" in row:
            store_ns, wall_ns = row["clock"]
            offset_ns = wall_ns - store_ns
            yield from (_seen(each, columns, names, offset_ns) for each in waiting)
            waiting.clear()
        else:
            # Another store goes on with the file: its names and its clock are its own.
            if row["witness"] != FORMAT:
                raise ValueError(f"format {row['witness']}, this sbench reads {FORMAT}")
            columns, offset_ns = row["columns"], None
            names.clear()
            waiting.clear()
    if not columns:
        raise ValueError("it has no first line")


def _seen(
    row: list[Any], columns: list[str], names: Mapping[int, str], offset_ns: int
) -> StoreRequest:
    values = dict(zip(columns, row, strict=True))
    values["head_ns"] += offset_ns
    for name in INSTANTS:
        values[name] = None if values[name] is None else values["head_ns"] + values[name]
    worker = values.pop("worker")
    return StoreRequest(
        worker=None if worker is None else names[worker],
        bucket=names[values.pop("bucket")],
        key=names[values.pop("front")] + values.pop("tail"),
        keys=tuple(values.pop("keys") or ()),
        **values,
    )
