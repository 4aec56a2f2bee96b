"""Kinds of operations, and the specification of an operation."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class OperationKind(StrEnum):
    """The measured actions that a workload can request."""

    PUT = "put"
    GET = "get"
    GET_RANGE = "get_range"
    HEAD = "head"
    LIST = "list"
    LIST_ALL = "list_all"
    """List all keys with a prefix, page by page."""
    DELETE = "delete"
    DELETE_MANY = "delete_many"
    COPY = "copy"
    WRITE_ARRAY = "write_array"
    APPEND_ARRAY = "append_array"
    READ_ARRAY = "read_array"
    CALL = "call"
    """A measured block of a user's function."""
    INCREMENT = "increment"
    """Read a shared register, and write it back unless another function wrote it meanwhile."""
    CLAIM = "claim"
    """Write a key unless it exists."""
    APPEND = "append"
    """Write the next manifest of a log unless it exists."""
    OBSERVE = "observe"
    """Read a shared key, or the end of a log."""
    SCAN = "scan"
    """Read the footer of a file, and some of the column chunks."""
    WAIT = "wait"
    """Wait until objects of other functions exist."""

    @property
    def creates(self) -> bool:
        """Whether it creates an object at its key."""
        return self in {OperationKind.PUT, OperationKind.COPY}


MIXED: Final = (
    OperationKind.PUT,
    OperationKind.GET,
    OperationKind.GET_RANGE,
    OperationKind.HEAD,
    OperationKind.LIST,
    OperationKind.DELETE,
    OperationKind.DELETE_MANY,
    OperationKind.COPY,
)
"""Kinds that a mix may contain."""
READING: Final = (OperationKind.GET, OperationKind.GET_RANGE)
"""Kinds that read an object or a range of it."""
HARMLESS: Final = (
    *READING,
    OperationKind.HEAD,
    OperationKind.LIST,
    OperationKind.LIST_ALL,
    OperationKind.SCAN,
)
"""Kinds that neither create nor delete an object."""
CONTENDED: Final = (
    OperationKind.INCREMENT,
    OperationKind.CLAIM,
    OperationKind.APPEND,
    OperationKind.OBSERVE,
)
"""Kinds for keys that all functions share."""


# Not frozen: each operation makes an instance, and frozen ones take three times as long.
@dataclass(slots=True, kw_only=True)
class OperationSpec:
    """One planned action on one object."""

    kind: OperationKind
    key: str
    size: int | None
    """Bytes of the object; None when its key does not declare them (a foreign object)."""
    generation: int = 0
    offset: int = 0
    """Start of a range."""
    length: int | None = None
    """Bytes of a range; None for the full object."""
    keys: tuple[str, ...] = ()
    """Keys to delete at once; for a copy, the source; for a wait, the objects, and afterwards those
    that exist."""
    content: str | None = None
    """Key of the object with the same bytes; None to use this object's key, the usual
    case."""
    due_ns: int | None = None
    """Instant after the begin at which it is due; None if the load has the pace."""
    is_missing: bool = False
    """Whether the store has to answer that the object does not exist."""
