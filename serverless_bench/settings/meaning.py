"""What is said of a setting where it is declared."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from serverless_bench.job.workload import Workload


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a setting is, besides its name, its type and its default."""

    what: str
    """Its help text."""
    _: KW_ONLY
    own: bool = False
    """Whether only jobs of workloads that declare it have it."""
    read: Callable[[str, Any], Any] | None = None
    """Makes the value in a specification, of the setting's name and what is given."""
    section: str = "Functions"
    """Of help, for a flag that has no place of its own there; of an ``own`` one, Workload."""
    otherwise: Callable[[Workload], object] = lambda _: None
    """What holds for a workload if it is None; None if nothing does."""


class Harmless(Meaning):
    """Meaning of a setting that counts from a file which the user does not trust.

    Whatever its value, it runs no program, names no file, and says neither where requests or
    credentials go nor who sends them: a number, a size, a duration, a choice, a name. A setting
    that does not say so counts only from the user's own hand (docs/configuration.md).
    """

    __slots__ = ()
