"""Metadata of a setting, given with its declaration."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from serverless_bench.job.workload import Workload


@dataclass(frozen=True, slots=True)
class Meaning:
    """Description of a setting, besides its name, type and default."""

    what: str
    """Help text."""
    _: KW_ONLY
    own: bool = False
    """Whether only workloads that declare the setting have it."""
    parse: Callable[[str], Any] | None = None
    """Converts a text to the value in a specification, for a setting that may be a text."""
    read: Callable[[str, Any], Any] | None = None
    """The same for any value, which follows the setting's name."""
    section: str = "Functions"
    """Section of the help for a flag without a specific place; Workload for an ``own`` flag."""
    otherwise: Callable[[Workload], object] = lambda _: None
    """Effective value for a workload if the setting is None; None if there is none."""


class Harmless(Meaning):
    """Description of a setting that is accepted from a file which the user does not trust.

    Its values run no program, name no file, and determine neither the destination of requests or
    credentials nor their sender: it is a number, a size, a duration, a choice or a name. Any other
    setting is only accepted directly from the user (docs/configuration.md).
    """

    __slots__ = ()
