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
