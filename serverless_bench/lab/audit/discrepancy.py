"""What a difference is."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that the run says and the store did not see, or the other way round."""

    about: str
    """asked, bytes, requests, times, schedule, bill or left."""
    text: str
    """One sentence."""
    key: str | None = None
    """Of the object, where there is one."""


Discrepancies = Iterator[Discrepancy]
