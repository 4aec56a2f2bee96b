"""Requests in a log: an S3 server access log, an op-log, or a table with a header.

Access logs have the fields of the Amazon S3 user guide, "Amazon S3 server access log format". An
op-log of warp or sai3-bench is a table with tabs, other tables have commas. Only the instant, the
kind, the key, the sizes and the status of a request are taken from a line.
"""

import csv
import re
from calendar import timegm
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple
from urllib.parse import unquote

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.replay.schedule import MISSING
from serverless_bench.job.operations import OperationKind

_MAX_NAMES: Final = 64
MAX_UPLOADS: Final = 1 << 14
"""Most multipart uploads that are open at the same time: uploads that nobody ends stay open."""
_MAX_BYTES: Final = 50 << 40
"""Largest object of S3."""
_MAX_NS: Final = 1 << 62
_LINE: Final = re.compile(
    r"\S+ \S+ \[([0-9]{2})/([A-Z][a-z]{2})/([0-9]{4}):([0-9:]{8}) ([+-][0-9]{4})\] "
    r"\S+ \S+ \S+ ([A-Z0-9_.]{1,64}) (\S+) "
    r'(?:"[^"]*"|-) ([0-9]{3}|-) \S+ ([0-9]+|-) ([0-9]+|-) '
)
_INSTANT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_ACCESS: Final[Mapping[str, OperationKind]] = {
    "REST.GET.OBJECT": OperationKind.GET,
    "REST.HEAD.OBJECT": OperationKind.HEAD,
    "REST.PUT.OBJECT": OperationKind.PUT,
    "REST.POST.OBJECT": OperationKind.PUT,
    "REST.POST.UPLOAD": OperationKind.PUT,
    "REST.COPY.OBJECT": OperationKind.COPY,
    "REST.DELETE.OBJECT": OperationKind.DELETE,
    "BATCH.DELETE.OBJECT": OperationKind.DELETE,
    "REST.GET.BUCKET": OperationKind.LIST,
}
"""Completed multipart uploads are puts; each key of a deletion of many has a line."""
_WORDS: Final[Mapping[str, OperationKind]] = {
    **{kind.value: kind for kind in {*_ACCESS.values(), OperationKind.GET_RANGE}},
    "stat": OperationKind.HEAD,
}
_COLUMNS: Final = (
    ("time", "start"),
    ("kind", "op", "operation", "method"),
    ("key", "file"),
    ("size", "bytes"),
    ("offset",),
    ("length", "bytes"),
    ("error", "status"),
)
"""Names of a table's columns; the first of a group that is there is used. The first three
groups have to be there."""
_NOT_FOUND: Final = re.compile(r"404|not.?found|no ?such ?key|does not exist", re.IGNORECASE)
READS: Final = (OperationKind.GET, OperationKind.GET_RANGE, OperationKind.HEAD)


class Request(NamedTuple):
    """A request that can be replayed."""

    at_ns: int
    kind: OperationKind
    key: str
    size: int | None
    """Size of the object; None if the line does not show it."""
    offset: int | None
    length: int
    """Bytes of a range, 0 for other kinds, or ``MISSING`` if the store found no object."""


class LogReader:
    """Reader of one log; it keeps no line."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        """Lines that are not replayed, by the reason."""
        self._uploads: Counter[str] = Counter()
        """Bytes of the open multipart uploads, by key."""

    def requests(self, lines: Iterable[str]) -> Iterator[Request]:
        """Yield the requests in the order of the log."""
        parse: Callable[[str], Request | None] | None = None
        for line in lines:
            if not line.strip() or line[0] == "#":
                continue
            if parse is None and (parse := self._table(line)) is not None:
                continue
            parse = parse or self._access
            try:
                request = parse(line)
            except (ValueError, LookupError, OverflowError, csv.Error):
                self._skip("lines that cannot be read")
                continue
            if request is not None:
                yield request

    def _access(self, line: str) -> Request | None:
        match = _LINE.match(line)
        if match is None:
            raise ValueError("not a line of an access log")
        day, month, year, time, zone, operation, key, status, sent, size = match.groups()
        number = "JanFebMarAprMayJunJulAugSepOctNovDec".index(month) // 3 + 1
        at_ns = _epoch_s(f"{year}-{number}-{day} {time}", zone) * NS_PER_S
        key, kind = unquote(key), _ACCESS.get(operation)
        if operation == "REST.PUT.PART" and status == "200":
            self._uploads[key] += _count(size) or 0
            if len(self._uploads) > MAX_UPLOADS:
                del self._uploads[next(iter(self._uploads))]
                self._skip("uploads with parts that were forgotten, because many had no end")
            return None
        if operation in {"REST.POST.UPLOADS", "REST.DELETE.UPLOAD"}:
            del self._uploads[key]
            return None
        if operation == "REST.POST.UPLOAD":
            size = str(self._uploads.pop(key, 0) or size)
        if status == "206" and kind is OperationKind.GET:
            kind = OperationKind.GET_RANGE
        return self._request(at_ns, operation, kind, status, key, [size, "", sent])

    def _table(self, header: str) -> "Callable[[str], Request | None] | None":
        """Return the parser of a table; None if this line is not a header."""
        delimiter = "\t" if "\t" in header else ","
        cells = [name.strip().lower() for name in header.split(delimiter)]
        at = [
            next((cells.index(name) for name in names if name in cells), len(cells))
            for names in _COLUMNS
        ]
        if len(cells) in at[:3]:
            return None
        return partial(self._row, delimiter, len(cells), at)

    def _row(self, delimiter: str, width: int, at: Sequence[int], line: str) -> Request | None:
        cells = [cell.strip() for cell in next(csv.reader((line,), delimiter=delimiter))]
        if len(cells) != width:
            raise ValueError("wrong number of columns")
        time, word, key, *sizes, status = ([*cells, ""][place] for place in at)
        return self._request(_instant_ns(time), word, _WORDS.get(word.lower()), status, key, sizes)

    def _request(
        self,
        at_ns: int,
        name: str,
        kind: OperationKind | None,
        status: str,
        key: str,
        sizes: Sequence[str],
    ) -> Request | None:
        """Return a request with possible numbers; an empty object is replayed as one byte."""
        size, offset, length = map(_count, sizes)
        is_ok = not status or status[0] == "2"
        is_missing = kind in READS and not is_ok and _NOT_FOUND.search(status) is not None
        if kind is None or not (is_ok or is_missing):
            self._skip(f"{name[:64]} {status[:3] if status.isdigit() else ''}".strip())
            return None
        if not 0 <= at_ns < _MAX_NS:
            raise ValueError("not an instant")
        if is_missing:
            return Request(at_ns, kind, key, None, None, MISSING)
        if kind in {OperationKind.PUT, OperationKind.COPY} or size:
            size = max(size or 0, 1)
        if kind is not OperationKind.GET_RANGE:
            return Request(at_ns, kind, key, size or None, None, 0)
        length = max(length or 0, 1)
        if not size or (offset or 0) + length > size:
            raise ValueError("not a range of the object")
        return Request(at_ns, kind, key, size, offset, length)

    def _skip(self, reason: str) -> None:
        is_new = reason not in self.skipped
        self.skipped["others" if is_new and len(self.skipped) >= _MAX_NAMES else reason] += 1


def _count(text: str) -> int | None:
    if text in {"", "-"}:
        return None
    count = int(text)
    if not 0 <= count <= _MAX_BYTES:
        raise ValueError("not a number of bytes")
    return count


def _instant_ns(text: str) -> int:
    """Return RFC 3339 text, or seconds since the epoch, in nanoseconds."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        return round(float(text) * NS_PER_S)
    time, digits, zone = match.groups("")
    return _epoch_s(time, zone) * NS_PER_S + int(digits.ljust(9, "0"))


# Many requests in a row have the same second.
@lru_cache(maxsize=1024)
def _epoch_s(time: str, zone: str) -> int:
    at_s = timegm(tuple(map(int, re.split("[- T:]", time))))
    if zone in {"", "Z"}:
        return at_s
    return at_s - int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
