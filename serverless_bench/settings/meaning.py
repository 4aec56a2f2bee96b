"""What is said of a setting where it is declared."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from serverless_bench.job.load import OWN_FUNCTION

WORKLOADS: Final = ("write", "read", "mixed", "contend", "array", OWN_FUNCTION)
"""Workloads that have settings of their own; one of a plugin takes those of all."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a setting is, besides its name, its type and its default."""

    what: str
    """Its help text."""
    _: KW_ONLY
    of: tuple[str, ...] = WORKLOADS
    """Those of ``WORKLOADS`` that have it."""
    also: str = ""
    """The field of a specification that it becomes, if that has another name."""
    of_field: Callable[[Any], object] | None = None
    """Makes the setting of that field's value, if it is another."""
    otherwise: Mapping[str, object] = field(default_factory=dict)
    """What holds if it is None, by workload."""


class Harmless(Meaning):
    """Meaning of a setting that counts from a file which the user does not trust.

    Whatever its value, it runs no program, names no file, and says neither where requests or
    credentials go nor who sends them: a number, a size, a duration, a choice, a name. A setting
    that does not say so counts only from the user's own hand (docs/configuration.md).
    """

    __slots__ = ()
