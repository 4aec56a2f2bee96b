"""Operations of a function: their number, kinds, times and objects."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, Literal, Self

from serverless_bench.base.units import MIB
from serverless_bench.job.keys import check_ratios, parse_layout
from serverless_bench.job.types import Limits, Specification, check_types

MAX_DUE: Final = 10_000_000
"""Most operations that the schedules of a run may plan: more records would not fit anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(metaclass=Specification):
    """The operations of a function, apart from the number of objects.

    A workload with further settings has a class for them, as ``ShuffleLoad``.

    Parameters
    ----------
    threads
        Operations of a function in flight at the same time; threads do not share objects.
    sizes
        Distribution of object sizes, as in "Payload" in the documentation; None for one size.
    layout
        Layout of the keys: random, sharded:N or sequential.
    compressibility
        Factor by which a compressor makes the bytes smaller.
    duplication
        Average number of copies of each 4 KiB block in an object.
    mix
        Weights of the operations of a mixed workload, by kind.
    operations
        Operations that each function performs of a mix, or each thread of a contended workload;
        None to continue for ``duration``.
    rate
        Operations to start per second, whether or not earlier ones have finished (open loop): of
        the whole job, or in an invocation its part of that. None for a closed loop.
    arrivals
        Distribution of the start times: uniform (even distances) or poisson.
    split
        Functions that share each object read; None if each reads full objects.
    range_size
        Bytes that a get_range of a mix reads, at a random offset.

    Examples
    --------
    >>> load = sbench.Load(threads=4, mix=(("get", 3), ("put", 1)), operations=100)
    >>> load.mix
    (('get', 3.0), ('put', 1.0))
    """

    threads: Annotated[int, Limits(1, 10_000)] = 1
    sizes: str | None = None
    layout: str = "random"
    compressibility: float = 1.0
    duplication: float = 1.0
    mix: tuple[tuple[str, float], ...] = ()
    operations: Annotated[int | None, Limits(1)] = None
    rate: Annotated[float | None, Limits(positive=True)] = None
    arrivals: Annotated[str, Literal["uniform", "poisson"]] = "uniform"
    split: Annotated[int | None, Limits(1)] = None
    range_size: Annotated[int, Limits(1)] = MIB

    @classmethod
    def narrow(cls, load: "Load") -> Self:
        """Return the load of a job whose workload has loads of this class."""
        if not isinstance(load, cls):
            raise TypeError(f"{type(load).__name__} is no {cls.__name__}")
        return load

    @classmethod
    def made(cls, settings: Mapping[str, Any]) -> "Load":
        """Return the load for values of settings by name, of which a workload has more."""
        own = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in settings.items() if name in own})

    @property
    def is_drawn(self) -> bool:
        """Whether operations are drawn at random, so that their number is not known in advance."""
        return bool(self.mix)

    @property
    def has_instants(self) -> bool:
        """Whether operations have instants, which count from a start that all functions share."""
        return False

    @property
    def library(self) -> str | None:
        """The library that moves the bytes in place of the client; None for the client."""
        return None

    @property
    def folder(self) -> str | None:
        """The directory that takes the place of a bucket; None for a bucket."""
        return None

    @property
    def code(self) -> str | None:
        """Code that workers run."""
        return None

    @property
    def saved(self) -> "Load":
        """The load in a run directory, which holds no code."""
        return self

    def __post_init__(self) -> None:
        check_types(self)
        object.__setattr__(self, "mix", tuple((str(n), float(w)) for n, w in self.mix))
        parse_layout(self.layout)
        check_ratios(self.compressibility, self.duplication)


def fitted(load: Load, kind: type[Load]) -> Load:
    """Return a load as another class of loads has it; the load itself if values would be lost."""
    own = {field.name for field in fields(kind)}
    lost = (field for field in fields(load) if field.name not in own)
    if type(load) is kind or any(getattr(load, f.name) != f.default for f in lost):
        return load
    return kind(**{f.name: getattr(load, f.name) for f in fields(load) if f.name in own})
