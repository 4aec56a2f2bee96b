"""Reads and writes of keys that the functions of a run share: the history of each version."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Act(StrEnum):
    """What was done to a shared key."""

    READ = "read"
    WRITE = "write"


class Ending(StrEnum):
    """What became of it."""

    DONE = "done"
    REFUSED = "refused"
    """Something else was there than the write was to replace (412)."""
    CONFLICT = "conflict"
    """Another write came at the same time (409)."""
    FAILED = "failed"
    """The store refused for another reason, and has not written."""
    UNKNOWN = "unknown"
    """No answer, or a failure of the store: it may have been written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One read or one write of a key that functions share."""

    operation: int
    """``OperationRecord.index``."""
    key: str
    act: Act
    version: str | None
    """Token of the version that was read, or that was to be written (``job.shared_keys``); None if
    nothing was there."""
    base: str | None
    """Token of the version that a write was to replace; of a read, what it says of that."""
    start_ns: int
    end_ns: int
    ending: Ending


AccessRow: TypeAlias = tuple[str, Act, str | None, str | None, int, int, Ending]
"""The fields of an ``Access`` after its operation."""
