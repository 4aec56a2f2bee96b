"""Units, and the only functions that convert between them.

Inside the package a size is an ``int`` of bytes, an instant is an ``int`` of nanoseconds since the
Unix epoch, a duration is an ``int`` of nanoseconds and a rate is a ``float`` of bytes per second;
names include the unit (``size_bytes``, ``start_ns``, ``bytes_per_s``). MB is 10**6 and MiB is
2**20; they appear only in flags and in text for users.
"""

import math
import re
from collections.abc import Iterable
from functools import partial
from typing import Final

from serverless_bench.base.errors import UsageError

NS_PER_S: Final = 1_000_000_000
KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

_DIGITS: Final = 18
"""Longest number accepted: 2^63 - 1 has 19 digits."""
_DECIMAL: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_ONE_UNIT: Final = 100
"""Rates up to this ratio are readable in the unit of the smallest."""
_RATE: Final = re.compile(
    r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(bit|b?)(?:/s)?", re.IGNORECASE | re.ASCII
)
_MAX_SIZE: Final = 64
"""Longest size, in characters, parsed or quoted in an error; Python does not convert texts of more
than 4,300 digits to a number."""
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]*)\s*")
_SECONDS: Final = {
    unit: seconds
    for seconds, units in (
        (1e-9, "ns nsec"),
        (1e-6, "us µs usec"),
        (1e-3, "ms msec"),
        (1.0, "s sec secs second seconds"),
        (60.0, "m min mins minute minutes"),
        (3600.0, "h hr hrs hour hours"),
        (86400.0, "d day days"),
    )
    for unit in units.split()
} | {"": 1.0}
_ENDLESS_S: Final = 1e9
"""Longest duration that is accepted: 31 years."""
_SHARE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,30})?(?:e-\d\d)?|\.\d{1,30})\s*(%?)", re.ASCII)
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def whole_number(text: str) -> int | None:
    """Return the number in a header of a response; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def parse_size(text: str, *, least: int = 1) -> int:
    """Return the bytes of a size like ``2GB``, ``64 MiB`` or ``1000``.

    Raises
    ------
    UsageError
        If ``text`` is not a size, or not an integral number of at least ``least`` bytes.
    """
    match = _SIZE.fullmatch(text.strip()) if len(text) <= _MAX_SIZE else None
    size = rest = 0
    if match is not None:
        number, prefix, binary = match.groups()
        factor = (_BINARY if binary else _DECIMAL).get(prefix.lower(), 0)
        # Parse the decimal point by hand: with float, 0.1GB would be one byte short of 100 MB.
        whole, _, fraction = number.partition(".")
        size, rest = divmod(int(whole + fraction) * factor, int("1" + "0" * len(fraction)))
    if match is None or size < least or rest:
        raise UsageError(
            f"{text[:_MAX_SIZE]!r} is not a size",
            hint=f"write whole bytes, at least {least}, or a number and a unit: 1000, 64MiB or 2GB",
        )
    return size


parse_distance: Final = partial(parse_size, least=0)
"""Return the bytes between two places, which may touch."""


def parse_rate(text: str) -> float:
    """Return the bytes per second of a link's rate.

    ``20Gbit`` is 20 * 10**9 bits per second; ``2.5GB`` is per second, too. A number without a unit
    is refused: who leaves the unit out rarely means bytes.

    Raises
    ------
    UsageError
        If ``text`` is not a rate.
    """
    match = _RATE.fullmatch(text.strip()) if len(text) <= _MAX_SIZE else None
    rate = 0.0
    if match is not None and (match[2] or match[4]):
        number, prefix, binary, unit = match.groups()
        factor = (_BINARY if binary else _DECIMAL).get(prefix.lower(), 0)
        rate = float(number) * factor / (8 if unit.lower() == "bit" else 1)
    if not rate > 0:
        raise UsageError(
            f"{text[:_MAX_SIZE]!r} is not a rate",
            hint="write a number and a unit per second, as in 20Gbit or 2.5GB",
        )
    return rate


def parse_duration(text: str) -> float:
    """Return the seconds that a duration like ``5``, ``50ms``, ``2m`` or ``1h30m`` names.

    Raises
    ------
    UsageError
        If ``text`` is not a duration.
    """
    rest = text.strip().lower()[:_MAX_SIZE]
    total, is_duration = 0.0, bool(rest)
    while is_duration and rest:
        match = _DURATION.match(rest)
        is_duration = match is not None and match[2] in _SECONDS
        if match is not None and is_duration:
            total += float(match[1]) * _SECONDS[match[2]]
            rest = rest[match.end() :]
    if not is_duration or total >= _ENDLESS_S:
        raise UsageError(
            f"{text[:_MAX_SIZE]!r} is not a duration", hint="write seconds, 500ms, 5s or 2m"
        )
    return total


def parse_share(text: str, *, below: float | None = None) -> float:
    """Return the fraction of a text like ``5%`` or ``0.05``.

    Raises
    ------
    UsageError
        If it is not from 0 to 1, or, with ``below``, not between 0 and ``below``.
    """
    match = _SHARE.fullmatch(text.strip())
    share = math.inf if match is None else float(match[1]) / (100 if match[2] else 1)
    if share > 1 or (below is not None and not 0 < share < below):
        limits = "from 0% to 100%" if below is None else f"above 0% and below {below:.0%}"
        raise UsageError(f"{text[:_MAX_SIZE]!r} is not a share {limits}", hint="write 5% or 0.05")
    return share


def bytes_per_second(size_bytes: int, duration_ns: int) -> float:
    """Return the rate in bytes per second; 0.0 when no time has passed."""
    return size_bytes * NS_PER_S / duration_ns if duration_ns > 0 else 0.0


def format_rate(bytes_per_s: float | None, *, like: float | None = None) -> str:
    """Return a rate in decimal units, as used in S3 literature; a dash for None.

    With ``like``, use the unit of that rate, so that rates shown together are easy to compare.
    """
    if bytes_per_s is None:
        return "-"
    size = like or bytes_per_s
    if size >= 1e9:
        return f"{bytes_per_s / 1e9:.2f} GB/s"
    if size >= 1e5:
        return f"{bytes_per_s / 1e6:.1f} MB/s"
    return f"{bytes_per_s / 1e3:.1f} kB/s"


def common_rate(rates: Iterable[float | None]) -> float | None:
    """Return a rate with a unit that suits all rates; None if they differ too much for one unit."""
    positive = [rate for rate in rates if rate]
    return min(positive) if positive and max(positive) <= _ONE_UNIT * min(positive) else None


def format_number(number: float, digits: int = 4) -> str:
    """Return a number with this many digits, or without a fraction from 1,000."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.{digits}g}"


def format_per_s(rate: float) -> str:
    """Return a number of operations per second, with three digits or more."""
    return f"{format_number(rate, 3)}/s"


def format_count(number: int, noun: str) -> str:
    """Return a number of things: ``1 function``, ``2,000 functions``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_size(size_bytes: int) -> str:
    """Return a size in binary units with a readable prefix."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if value == int(value) else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} TiB"


def format_seconds(seconds: float | None) -> str:
    """Return a duration with three significant digits; a dash for None."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{format_number(seconds, 3)} s"
