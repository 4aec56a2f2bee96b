"""The store's file: what it saw, request by request."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serverless_bench.errors import UsageError

_FORMAT: Final = 1
_INSTANTS: Final = ("first_in_ns", "last_in_ns", "answered_ns", "first_out_ns", "last_out_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRequest:
    """One request; instants are nanoseconds since the epoch by the store's clock."""

    request: int
    """The store's number of it, which clients see as the request id, in hexadecimal."""
    connection: int
    worker: str | None
    """Who sent it, if the user agent names it."""
    operation: str | None
    bucket: str
    key: str
    """Of the object; the prefix of a listing."""
    part: int | None
    size: int | None
    offset: int | None
    length: int | None
    in_bytes: int
    out_bytes: int
    head_ns: int
    first_in_ns: int | None
    last_in_ns: int | None
    answered_ns: int | None
    first_out_ns: int | None
    last_out_ns: int | None
    status: int | None
    fault: str | None
    keys: tuple[str, ...] = ()
    """What was deleted, of many."""

    @property
    def ok(self) -> bool:
        """Whether the store did what was requested, as far as it can tell."""
        return self.status is not None and self.status < 300

    @property
    def sent_range(self) -> tuple[int, int]:
        """Which bytes of the object went out: from the first to before the last."""
        begin = self.offset or 0
        return begin, begin + self.out_bytes

    @property
    def request_id(self) -> str:
        """What clients know it by."""
        return f"{self.request:016X}"


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
            seen = list(_rows(lines))
    except OSError as exc:
        raise UsageError(f"cannot read --witness {path}: {exc.strerror}") from exc
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as exc:
        raise UsageError(
            f"{path} is no witness of a store: {type(exc).__name__}: {exc}",
            hint="sbench serve --witness FILE writes one",
        ) from exc
    return sorted(seen, key=lambda one: one.head_ns)


def _rows(lines: Iterator[str]) -> Iterator[StoreRequest]:
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
            if row["witness"] != _FORMAT:
                raise ValueError(f"format {row['witness']}, this sbench reads {_FORMAT}")
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
    for name in _INSTANTS:
        values[name] = None if values[name] is None else values["head_ns"] + values[name]
    worker = values.pop("worker")
    return StoreRequest(
        worker=None if worker is None else names[worker],
        bucket=names[values.pop("bucket")],
        key=names[values.pop("front")] + values.pop("tail"),
        keys=tuple(values.pop("keys") or ()),
        **values,
    )
