"""Lines of ``sbench doctor``, for whatever looks at something before a run."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from serverless_bench.units import NS_PER_S

_SKEW_WARN_NS: Final = NS_PER_S
_SKEW_FAIL_NS: Final = 900 * NS_PER_S
"""AWS refuses signatures that are 15 minutes off (``RequestTimeTooSkewed``)."""


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's."""

    level: Level
    what: str
    text: str
    hint: str = ""
    """What to do; empty if nothing."""


ok: Final = partial(Finding, Level.OK)
warn: Final = partial(Finding, Level.WARN)
"""Of a finding that a run survives."""
fail: Final = partial(Finding, Level.FAIL)
"""Of a finding that a run does not survive."""


def clock(offset: tuple[int, int] | None, *, answered: bool) -> Finding:
    """Judge bounds of this machine's clock minus another's, or the other way round."""
    hint = "let NTP set this machine's clock"
    if offset is None:
        text = "its answers contradict each other" if answered else "nobody tells the time"
        return warn("clock", text, "several machines with several clocks may stand behind it")
    low, high = offset
    text = f"off by {low / NS_PER_S:+.2f} to {high / NS_PER_S:+.2f} s"
    least = max(low, -high, 0)
    if least > _SKEW_FAIL_NS:
        return fail("clock", f"{text}: signatures are refused beyond 15 minutes", hint)
    return warn("clock", text, hint) if least > _SKEW_WARN_NS else ok("clock", text)
