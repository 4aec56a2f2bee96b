"""What published figures must agree with: checks that a file asks for, as values.

``contradictions`` says which rows do not; docs/experiments/README.md explains each kind.
"""

from collections.abc import Mapping
from typing import Final, get_args

from msgspec import Struct, structs


class BaseCheck(Struct, frozen=True, kw_only=True, tag_field="kind", tag=str.lower):
    """What all of them say."""

    text: str
    """What a contradiction means."""
    where: Mapping[str, str | int | float | bool] = {}
    """Only rows at these values of axes."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The metrics that it is about."""
        given = structs.asdict(self)
        named = (
            given.get(field, ()) for field in ("metric", "failed", "time", "metrics", "others")
        )
        return tuple(name for one in named for name in ([one] if isinstance(one, str) else one))

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The axes that it names."""
        along = structs.asdict(self).get("along")
        return (*self.where, along) if along else tuple(self.where)


class Grows(BaseCheck, frozen=True, kw_only=True):
    """A time must not fall where the work grows."""

    metric: str
    along: str
    """Axis of numbers or sizes."""


class Link(BaseCheck, frozen=True, kw_only=True):
    """No row may move more bytes per second than its network carries."""

    metric: str
    """A rate of bytes, operations per second, or a time."""
    most: float
    unit: str
    """Of ``most``: of bytes per second."""
    along: str = ""
    """Axis of sizes: how many bytes an operation, or the time, is for."""
    bytes: int = 0
    """The same of all rows, where no axis says it."""


class Failures(BaseCheck, frozen=True, kw_only=True):
    """What failed is no throughput."""

    metric: str
    """A rate that counts whatever was tried."""
    failed: str
    """The share of it that failed, another metric."""


class Repeats(BaseCheck, frozen=True, kw_only=True):
    """What are different things do not have all figures alike: rows, or columns of one row."""

    metrics: tuple[str, ...]
    along: str = ""
    """Axis in which rows differ."""
    others: tuple[str, ...] = ()
    """As many metrics of the same row, in place of an axis."""


class Amount(BaseCheck, frozen=True, kw_only=True):
    """A rate times its time is what was done."""

    metric: str
    """The rate."""
    time: str
    """Another metric."""
    along: str = ""
    amounts: Mapping[str, float] = {}
    """By value of ``along``: what was done; without it, the same in all rows."""


class Order(BaseCheck, frozen=True, kw_only=True):
    """Figures of one row must not fall in this order, as percentiles must not."""

    metrics: tuple[str, ...]


Check = Amount | Failures | Grows | Link | Order | Repeats
KINDS: Final[Mapping[str, type[Check]]] = {kind.__name__.lower(): kind for kind in get_args(Check)}
"""By what a file calls them."""


def kind_of(check: Check) -> str:
    """Return what a file calls a check."""
    return type(check).__name__.lower()
