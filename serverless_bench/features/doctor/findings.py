"""Lines in the report of ``sbench doctor``, for checks before a run."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from serverless_bench.base.units import NS_PER_S

_SKEW_WARN_NS: Final = NS_PER_S
_SKEW_FAIL_NS: Final = 900 * NS_PER_S
"""AWS rejects signatures with a clock skew above 15 minutes (``RequestTimeTooSkewed``)."""


class Level(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """A line in the report of ``sbench doctor``."""

    level: Level
    what: str
    text: str
    hint: str = ""
    """Recommended action; empty if none is needed."""


ok: Final = partial(Finding, Level.OK)
warn: Final = partial(Finding, Level.WARN)
"""A finding that does not prevent a run."""
fail: Final = partial(Finding, Level.FAIL)
"""A finding that prevents a run."""


def clock(offset: tuple[int, int] | None, *, answered: bool) -> Finding:
    """Rate the bounds of the offset between this machine's clock and another clock."""
    hint = "let NTP set this machine's clock"
    if offset is None:
        text = (
            "the responses contradict each other" if answered else "no response contains the time"
        )
        return warn(
            "clock", text, "the endpoint may consist of several machines with different clocks"
        )
    low, high = offset
    text = f"off by {low / NS_PER_S:+.2f} to {high / NS_PER_S:+.2f} s"
    least = max(low, -high, 0)
    if least > _SKEW_FAIL_NS:
        return fail("clock", f"{text}: signatures are refused beyond 15 minutes", hint)
    return warn("clock", text, hint) if least > _SKEW_WARN_NS else ok("clock", text)
