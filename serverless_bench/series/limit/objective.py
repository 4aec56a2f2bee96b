"""What a level has to hold, as a user says it: ``--p99 50ms --errors 0.1%``."""

import re
from dataclasses import dataclass
from typing import Final

from serverless_bench.errors import UsageError

_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_SECONDS: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*(us|ms|s|min|h)")
_BEYOND_P99: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What share of the operations may be slow, and what share may fail.

    Raises
    ------
    UsageError
        If nothing is asked for.
    """

    p99_s: float | None = None
    """What 99 of 100 operations are not to take longer than."""
    errors: float | None = None
    """The share that may fail or never begin."""

    def __post_init__(self) -> None:
        if self.p99_s is None and self.errors is None:
            raise UsageError("there is no objective to hold", hint="as in --p99 50ms --errors 0.1%")

    @property
    def allowed(self) -> dict[str, float]:
        """The share of bad operations that each part of it allows."""
        parts = {"p99": None if self.p99_s is None else _BEYOND_P99, "errors": self.errors}
        return {name: share for name, share in parts.items() if share is not None}


def parse_seconds(flag: str, text: str) -> float:
    """Return the seconds that a text like ``50ms``, ``1.5 s`` or ``10min`` names.

    Raises
    ------
    UsageError
        If it names none.
    """
    match = _SECONDS.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise UsageError(
            f"{flag} {text!r} is no time", hint=f"as in {flag} 50ms; units: us, ms, s, min, h"
        )
    return float(match[1]) * _UNITS[match[2]]
