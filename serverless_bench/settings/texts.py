"""Conversion of texts: each function takes the name of a setting and the given value."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.job.defaults import DEFAULT_MIX
from serverless_bench.job.operations import MIXED
from serverless_bench.job.types import wrong
from serverless_bench.units import KIB, is_bare, parse_duration, parse_size

Options = str | Sequence[str] | Mapping[str, str | int | float | bool]
"""Several ``NAME=VALUE``, or a table."""

_MAX_DIGITS: Final = 18
"""Most digits of a length of an array, so that it fits into 64 bits."""


def read_size(name: str, size: str | int) -> int:
    """Return a size in bytes from a number or a text; below 1 KiB, a text needs a unit.

    Raises
    ------
    UsageError
        If the unit is missing, or the text is not a size.
    """
    if isinstance(size, int):
        return size
    if is_bare(size) and float(size) < KIB:
        raise wrong(
            name, f"{size} has no unit", hint=f"`{name}` {size}MiB, or `{name}` {size}B for bytes"
        )
    try:
        return parse_size(size)
    except UsageError as exc:
        raise wrong(name, str(exc), hint=exc.hint) from exc


def read_duration(name: str, duration: float | str) -> float:
    """Return the seconds of a duration: a number, or a text like ``2m``."""
    if not isinstance(duration, str):
        return duration
    try:
        return parse_duration(f"`{name}`", duration)
    except UsageError as exc:
        exc.field = name
        raise


def read_sizes(_: str, sizes: str) -> str:
    """Return a distribution of sizes in the form that functions get, without a file."""
    from serverless_bench.job.sizes import parse_sizes  # noqa: PLC0415 - not needed for help

    return str(parse_sizes(sizes))


def read_pairs(name: str, given: Options) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a setting with several ``NAME=VALUE``, in the order given."""
    if isinstance(given, Mapping):
        # TOML and Python have booleans, but options of the libraries are texts.
        return tuple(
            (key, str(value).lower() if isinstance(value, bool) else str(value))
            for key, value in given.items()
        )
    pairs: dict[str, str] = {}
    for text in (given,) if isinstance(given, str) else given:
        key, _, value = text.partition("=")
        if not key or not value:
            missing = "value" if key else "name"
            raise wrong(
                name,
                f"{text!r} is not NAME=VALUE: it has no {missing}",
                hint=f"write `{name}` NAME=VALUE",
            )
        if key in pairs:
            raise wrong(name, f"gives {key} twice", hint="give it once")
        pairs[key] = value
    return tuple(pairs.items())


def read_options(name: str, given: Options) -> tuple[tuple[str, str], ...]:
    """Return options of a library, with names as in Python."""
    return tuple((key.replace("-", "_"), value) for key, value in read_pairs(name, given))


def read_mix(name: str, mix: str | Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return the weights by kind of operation."""
    kinds = {kind.value for kind in MIXED}
    weights: dict[str, float] = {}
    text = mix if isinstance(mix, str) else ",".join(f"{n}={w}" for n, w in mix.items())
    for piece in text.split(","):
        kind, _, weight = (part.strip() for part in piece.partition("="))
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        if kind not in kinds or kind in weights or not 0 <= value < float("inf"):
            raise wrong(
                name,
                f"{text!r}: {piece!r} is not KIND=WEIGHT",
                hint=f"write it as in {DEFAULT_MIX}; kinds: {', '.join(sorted(kinds))}, each once",
            )
        weights[kind] = value
    if not sum(weights.values()):
        raise wrong(name, f"{text!r} has no weight above 0")
    return tuple((kind, weight) for kind, weight in weights.items() if weight)


def read_lengths(name: str, lengths: str | tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths of a shape, by axis."""
    if not isinstance(lengths, str):
        return lengths
    parts = [part.strip() for part in lengths.split(",")]
    if not all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
        raise wrong(name, f"{lengths!r} is not a shape", hint="write it as in 4096,4096")
    return tuple(map(int, parts))


def read_folder(_: str, path: str) -> str:
    """Return the absolute path of a directory."""
    return str(Path(path).absolute())
