"""Both sides of an audit in raw form: the run's records, and the store's log."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.features.loopback.request_log import FORMAT, INSTANTS, StoreRequest
from serverless_bench.rundir.files import open_file

Row = Mapping[str, Any]
"""A row of a table of a record."""

_NO_TOKEN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SIZE: Final = re.compile(r"[0-9a-f]{32}\.([0-9]+)(?:\.[zd][0-9zd]+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFunction:
    """A function with a record."""

    index: int
    launch: int
    worker: str
    """Name of the worker in the user agent."""
    start_ns: int
    end_ns: int
    error: str | None
    duplicate: bool
    operations: Sequence[Row]
    attempts: Mapping[int, Sequence[Row]]
    """Attempts, by the number of the operation."""
    dropped: Sequence[Row]
    """Operations that were due in an open loop and never started."""

    @property
    def where(self) -> str:
        """Return the name of the function for messages."""
        launch = f" (launch {self.launch})" if self.launch else ""
        return f"function {self.index}{launch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run according to the run directory."""

    run_id: str
    created_ns: int
    job: Mapping[str, Any]
    load: Mapping[str, Any]
    """Parameters of the operations."""
    exact: bool
    """Whether each request of the client is an attempt in a record."""
    polled: bool
    """Whether workers polled for events, and may have claimed the same event."""
    functions: Sequence[ReportedFunction]
    lost: int
    """Number of functions without a record, which may have sent requests."""
    again: bool
    """Whether functions were launched again."""
    resumed: bool
    """Whether a driver resumed the run of an earlier driver."""
    ended: bool
    """Whether the driver finished."""
    cut_short: bool
    """Whether a stop ended the functions, perhaps before their duration."""
    last_ns: int
    """Instant of the last outcome."""
    probes: Sequence[Sequence[int]]
    """The driver's requests for the store's clock: sent, received, the store's time."""
    probed: bool
    """Whether functions reported their properties and permissions before the run."""
    asked_again: Sequence[tuple[int, int]]
    """Periods in which they may have reported them again: from the last outcome of an earlier
    driver's
    launches until the first launch of a driver that resumes the run, or until its end if it
    launched
    nothing.
    """
    keys: Sequence[str]
    ledger: frozenset[str]

    @property
    def operations(self) -> Iterator[Row]:
        """Operations of all functions."""
        return (op for function in self.functions for op in function.operations)

    @property
    def complete(self) -> bool:
        """Whether the job was completed exactly once, and without a failure."""
        clean = all(function.error is None for function in self.functions)
        clean &= all(op["error"] is None for op in self.operations)
        indexes = sorted(function.index for function in self.functions)
        once = indexes == list(range(self.job["number"])) and not self.again
        return self.ended and not self.resumed and clean and once and not self.lost


def read_reported_run(path: Path) -> ReportedRun:
    """Parse a run directory.

    Raises
    ------
    ArchiveError
        If the directory holds no run.
    """
    try:
        with open_file(path / "run.json") as file:
            header = json.loads(file.read())
        rows = list(_rows(path / "records.jsonl"))
        ended = [row["end"] for row in rows if "end" in row]
        functions = [_function(row["record"]) for row in rows if row.get("record")]
        collected = [row["collected_ns"] for row in rows if "collected_ns" in row]
        # If a function was launched again, only the last outcome is used.
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
            cut_short=any(end.get("stopped") or end.get("stability") for end in ended),
            last_ns=max(collected, default=header["created_ns"]),
            probes=[probe for end in ended for probe in end.get("probes", ())],
            probed=bool(header.get("probe")),
            asked_again=list(_asked_again(rows)),
            # A size may follow a tab.
            keys=[line.partition("\t")[0] for line in _lines(path / "keys.txt")],
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
    """Return the size of an object according to its key; None if the key has no size."""
    match = _SIZE.search(key)
    return int(match[1]) if match else None


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
        dropped=_table(record["dropped"]),
    )


def _table(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with open_file(path) as lines:
        yield from (json.loads(line) for line in lines if line.endswith(b"\n"))


def _lines(path: Path) -> list[str]:
    # An incomplete last line was cut off and is not a key.
    if not path.exists():
        return []
    with open_file(path) as file:
        return [line.decode() for line in file.read().split(b"\n")[:-1] if line]


def by_key(requests: Iterable[StoreRequest]) -> dict[str, list[StoreRequest]]:
    """Return requests by key."""
    requests_by_key: dict[str, list[StoreRequest]] = {}
    for request in requests:
        requests_by_key.setdefault(request.key, []).append(request)
    return requests_by_key


def read_request_log(path: Path) -> list[StoreRequest]:
    """Return all requests in the file of a request log, in the order of their arrival.

    An incomplete last line is ignored: the store may still be running.

    Raises
    ------
    UsageError
        If the file cannot be read, or is not the file of a request log.
    """
    try:
        with path.open(encoding="ascii") as lines:
            requests = list(_requests(lines))
    except OSError as exc:
        raise UsageError(f"cannot read --request-log {path}: {exc.strerror}") from exc
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as exc:
        raise UsageError(
            f"{path} is not the request log of a store: {type(exc).__name__}: {exc}",
            hint="create one with sbench serve --request-log FILE",
        ) from exc
    return sorted(requests, key=lambda request: request.head_ns)


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
            # The clock line of a batch follows its first requests.
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
            yield from (_seen(early_row, columns, names, offset_ns) for early_row in waiting)
            waiting.clear()
        else:
            # A later store appends to the file, with separate names and clock.
            if row["request_log"] != FORMAT:
                raise ValueError(f"format {row['request_log']}, this sbench reads {FORMAT}")
            columns, offset_ns = row["columns"], None
            names.clear()
            waiting.clear()
    if not columns:
        raise ValueError("the first line is missing")


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
