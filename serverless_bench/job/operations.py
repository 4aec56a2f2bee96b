"""What a function can do once, and one such operation."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class OperationKind(StrEnum):
    """The measured actions that a workload can ask for."""

    PUT = "put"
    GET = "get"
    GET_RANGE = "get_range"
    HEAD = "head"
    LIST = "list"
    DELETE = "delete"
    DELETE_MANY = "delete_many"
    COPY = "copy"
    WRITE_ARRAY = "write_array"
    APPEND_ARRAY = "append_array"
    READ_ARRAY = "read_array"
    CALL = "call"
    """A stretch of the user's own function."""
    INCREMENT = "increment"
    """A shared register is read, and written back if nobody has written meanwhile."""
    CLAIM = "claim"
    """A key is written if nobody has written it."""
    APPEND = "append"
    """The next manifest of a log is written if nobody has written it."""
    OBSERVE = "observe"
    """What stands at a shared key, or at the end of a log, is read."""

    @property
    def creates(self) -> bool:
        """Whether it makes an object at its key."""
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
"""What a mix may have."""
CONTENDED: Final = (
    OperationKind.INCREMENT,
    OperationKind.CLAIM,
    OperationKind.APPEND,
    OperationKind.OBSERVE,
)
"""Kinds that are about keys that all functions share."""


# Not frozen: one is made of every operation, and a frozen one takes three times as long.
@dataclass(slots=True, kw_only=True)
class OperationSpec:
    """One planned action on one object."""

    kind: OperationKind
    key: str
    size: int | None
    """Bytes of the object; None when its key does not say (a foreign object)."""
    generation: int = 0
    offset: int = 0
    """Where a range begins."""
    length: int | None = None
    """Bytes of a range; None for the whole object."""
    keys: tuple[str, ...] = ()
    """What is deleted at once; the source of a copy."""
    content: str | None = None
    """Key of the object whose bytes this one holds; None for its own, as a rule."""
