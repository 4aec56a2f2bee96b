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
