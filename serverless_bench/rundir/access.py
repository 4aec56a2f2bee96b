"""Reads and writes of shared keys: the access history of each version."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Act(StrEnum):
    """Type of access to a shared key."""

    READ = "read"
    WRITE = "write"


class Ending(StrEnum):
    """Outcome of an access."""

    DONE = "done"
    REFUSED = "refused"
    """The key held a version other than the expected version (412)."""
    CONFLICT = "conflict"
    """Another write was in progress at the same time (409)."""
    FAILED = "failed"
    """The store rejected the request for another reason, and did not write."""
    UNKNOWN = "unknown"
    """No response, or a failure of the store; the write may have taken effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A single read or write of a shared key."""

    operation: int
    """``OperationRecord.index``."""
    key: str
    act: Act
    version: str | None
    """Token of the version that was read or was to be written (``shared_keys``); None if
    the key did not exist."""
    base: str | None
    """Token of the version that a write was to replace; for a read, as recorded in that version."""
    start_ns: int
    end_ns: int
    ending: Ending


AccessRow: TypeAlias = tuple[str, Act, str | None, str | None, int, int, Ending]
"""The fields of an ``Access`` after its operation."""
