"""The op-log: a table of requests in the format of warp, s3dlio and sai3-bench.

It is tab-separated, with a header and trailing comments. The number of columns has grown: 13 at
first (s3dlio and sai3-bench still write these), then ``cat``, then ``last_byte``; all are found
by name. warp writes it with ``--full`` (pkg/bench/ops.go), s3dlio in src/s3_logger.rs.
"""

import csv
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, TextIO

import numpy as np

from serverless_bench.base.errors import OperationError, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.formats.importers.base import (
    GET,
    KINDS,
    PUT,
    ImportedRows,
    check,
    common,
    plain_key,
    plain_text,
    refuse,
)
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import ABSENT

MAX_ROWS: Final = 10_000_000
_MAX_LINE: Final = 1 << 16
_MAX_IDLE: Final = 100_000
_MAX_OTHERS: Final = 64
"""Maximum number of unknown kinds of operations; all tools together have fewer."""
_MAX_WORD: Final = 128
"""Maximum length of such a kind, and of a thread with its client."""
_MAX_ENDPOINT: Final = 256
_MAX_DETAIL: Final = 1000
"""Maximum length of an error's text; the rest is dropped."""
_NEEDED: Final = (
    *("thread", "op", "bytes", "file", "error", "start", "first_byte", "end", "duration_ns"),
)
_KINDS: Final = {
    "PUT": PUT,
    "GET": GET,
    "STAT": KINDS.index(OperationKind.HEAD),
    "HEAD": KINDS.index(OperationKind.HEAD),
    "DELETE": KINDS.index(OperationKind.DELETE),
    "LIST": KINDS.index(OperationKind.LIST),
    # Uploads under other names: a part, an addition to an object, an upload that becomes several
    # objects, a batch of small objects in an archive, a file of a table.
    **dict.fromkeys(("PUTPART", "APPEND", "POST", "BULKPUT", "UPLOAD"), PUT),
    # Reads: a file of a table, a range.
    **dict.fromkeys(("DOWNLOAD", "GET_RANGE"), GET),
}
"""warp writes STAT, s3dlio writes HEAD."""
_DELETE, _LIST = KINDS.index(OperationKind.DELETE), KINDS.index(OperationKind.LIST)
_DELETE_MANY: Final = KINDS.index(OperationKind.DELETE_MANY)
_OPTIONAL: Final = ("client_id", "endpoint", "last_byte", "cat", "n_objects")
_INSTANT: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII
)
_CLOCK_SET_NS: Final = 1_000_000
"""Maximum drift of a slewed clock within an operation."""
_ERRORS: Final[Sequence[tuple[str, str]]] = (
    ("throttled", r"slow ?down|reduce your request rate|too ?many ?requests|\b(?:503|429)\b"),
    ("not_found", r"no ?such ?(?:key|bucket)|not found|does not exist|\b404\b"),
    ("access_denied", r"access ?denied|forbidden|signature|invalid ?access ?key|\b40[13]\b"),
    ("timeout", r"time(?:d )?-?out|deadline exceeded"),
    ("server_error", r"internal ?(?:server ?)?error|\b(?:50[02-9]|52\d|530)\b"),
    ("connection_error", r"connection|broken pipe|\bEOF\b|reset by peer|refused"),
    ("bad_response", r"unexpected|short (?:read|upload)|mismatch"),
    ("bad_request", r"bad ?request|invalid|\b400\b"),
)
"""Patterns for the errors of S3 clients in Go and Rust, with the codes of ``errors.py``."""
_WORDS: Final = frozenset(kind.code for kind in OperationError.__subclasses__())
"""Codes in the output of ``sbench export``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpLog:
    """Parsed op-log: rows of known operations, and counts of unknown ones."""

    path: Path
    rows: ImportedRows
    """Rows, with ``function`` as the index into ``threads``."""
    threads: Sequence[tuple[str, str]]
    """Client id and thread, as spelled in the file."""
    endpoint: str
    """Endpoint; empty if there is more than one."""
    others: Mapping[str, int]
    """Numbers of operations of other kinds."""
    has_categories: bool
    """Whether the header has a column that only warp writes."""
    clock_set: int
    """Number of operations with a duration that differs from the difference of the instants."""

    @property
    def first_bytes_differ(self) -> bool:
        """Whether any first byte precedes the end of its operation."""
        first, end = self.rows.column("first_byte_ns"), self.rows.column("end_ns")
        return bool(((first != ABSENT) & (first < end)).any())


def read_oplog(path: Path, lines: TextIO) -> OpLog:
    """Parse the lines of an op-log.

    Raises
    ------
    UsageError
        If a column is missing, or a line is invalid.
    """
    # Go quotes an error that contains a quotation mark or a line end, as in CSV.
    table = csv.reader(iter(lambda: lines.readline(_MAX_LINE), ""), delimiter="\t")
    idle = 0
    try:
        parser = _Parser(path, next(table))
        for cells in table:
            if cells and not cells[0].startswith("#"):
                parser.take(cells, table.line_num)
            elif (idle := idle + 1) > _MAX_IDLE:
                refuse(path, f"more than {_MAX_IDLE} of its lines are empty or comments")
    except (csv.Error, ValueError, IndexError, OverflowError):
        refuse(path, f"line {table.line_num} is invalid")
    return parser.finish()


class _Parser:
    def __init__(self, path: Path, names: Sequence[str]) -> None:
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise UsageError(
                f"{path} is not an op-log: the column {missing[0]!r} is missing",
                hint="import a file that warp --full, s3dlio or sai3-bench wrote",
            )
        self._path = path
        # Missing optional columns refer to the empty cell that ``take`` appends.
        self._at = dict.fromkeys(_OPTIONAL, -1) | {name: i for i, name in enumerate(names)}
        self._width = len(names)
        self.rows = ImportedRows()
        self._threads: dict[tuple[str, str], int] = {}
        self._endpoints: set[str] = set()
        """At most two endpoints: with two there is no common endpoint."""
        # Share one object per key, and per error, as they are repeated often.
        self._key, self._error = cache(plain_key), cache(_error)
        self._others: Counter[str] = Counter()
        self._durations = array("q")

    def take(self, cells: list[str], number: int) -> None:
        """Add an operation; raise ``ValueError`` if the line is invalid."""
        if len(cells) != self._width:
            raise ValueError("wrong number of columns")
        cells.append("")
        if len(self.rows) >= MAX_ROWS:
            refuse(self._path, f"it has more than {MAX_ROWS} operations")
        at, rows = self._at, self.rows
        kind = cells[at["op"]]
        if kind not in _KINDS:
            if kind not in self._others and (
                len(self._others) >= _MAX_OTHERS or not plain_text(kind, _MAX_WORD)
            ):
                raise ValueError("not a kind of operation")
            self._others[kind] += 1
            return
        place, count = _KINDS[kind], int(cells[at["n_objects"]] or 1)
        if place == _DELETE and count > 1:
            place = _DELETE_MANY
        first, last = cells[at["first_byte"]], cells[at["last_byte"]]
        size, duration = int(cells[at["bytes"]]), int(cells[at["duration_ns"]])
        first_ns = _instant_ns(first) if first else ABSENT
        last_ns = _instant_ns(last) if last else ABSENT
        code, detail = self._error(cells[at["error"]])
        thread = (cells[at["client_id"]], cells[at["thread"]])
        if thread not in self._threads and not plain_text("/".join(thread), _MAX_WORD):
            raise ValueError("not a thread")
        rows.add(
            function=self._threads.setdefault(thread, len(self._threads)),
            line=number,
            kind=place,
            start_ns=_instant_ns(cells[at["start"]]),
            end_ns=_instant_ns(cells[at["end"]]),
            first_byte_ns=first_ns if place == GET else ABSENT,
            last_byte_ns=last_ns if place == PUT else ABSENT,
            size_bytes=size if place in {PUT, GET} else 0,
            count=count if place in {_LIST, _DELETE_MANY} and count >= 0 else 1,
            warmup=0,
            key=self._key(cells[at["file"]]),
            error=code,
            detail=detail,
        )
        self._durations.append(duration)
        if len(self._endpoints) <= 1:
            self._endpoints.add(plain_text(cells[at["endpoint"]], _MAX_ENDPOINT))

    def finish(self) -> OpLog:
        rows = self.rows
        check(self._path, rows, "the operation in line")
        differ = rows.column("end_ns") - rows.column("start_ns")
        differ = np.abs(differ - np.frombuffer(self._durations, dtype=np.int64))
        return OpLog(
            path=self._path,
            rows=rows,
            threads=tuple(self._threads),
            endpoint=common(self._endpoints),
            others=dict(self._others),
            has_categories=self._at["cat"] >= 0,
            clock_set=int((differ > _CLOCK_SET_NS).sum()),
        )


def _error(text: str) -> tuple[str | None, str | None]:
    return (error_code(text), text[:_MAX_DETAIL]) if text else (None, None)


def error_code(text: str) -> str:
    """Return the code of ``errors.py`` for a client's text about a failed request."""
    if text in _WORDS:
        return text
    return next((code for code, words in _ERRORS if re.search(words, text, re.IGNORECASE)), "error")


def _instant_ns(text: str) -> int:
    """Return RFC 3339 text in nanoseconds."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueError("not an instant")
    date_and_time, digits, zone = match.groups("")
    return _epoch_s(date_and_time, zone) * NS_PER_S + int(digits.ljust(9, "0"))


@lru_cache(maxsize=1024)
def _epoch_s(date_and_time: str, zone: str) -> int:
    utc_s = int(np.datetime64(date_and_time, "s").astype(np.int64))
    if zone == "Z":
        return utc_s
    return utc_s - int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60)
