"""Conversion of texts; a function that ``read``s takes the name of a setting and its value."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from serverless_bench.job.defaults import DEFAULT_MIX
from serverless_bench.job.operations import MIXED
from serverless_bench.job.types import wrong

Options = str | Sequence[str] | Mapping[str, str | int | float | bool]
"""Several ``NAME=VALUE``, or a table."""

_MAX_DIGITS: Final = 18
"""Most digits of a length of an array, so that it fits into 64 bits."""


def canonical_sizes(sizes: str) -> str:
    """Return a distribution of sizes in the form that functions get."""
    from serverless_bench.job.sizes import parse_sizes

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
        problems = {
            f"{piece!r} is not KIND=WEIGHT": not 0 <= value < float("inf"),
            f"{kind!r} is no kind of operation": kind not in kinds,
            f"{kind!r} has two weights": kind in weights,
        }
        if problem := next((text for text, is_wrong in problems.items() if is_wrong), None):
            raise wrong(
                name,
                f"{text!r}: {problem}",
                hint=f"write it as in {DEFAULT_MIX}; kinds: {', '.join(sorted(kinds))}, each once",
            )
        weights[kind] = value
    if not sum(weights.values()):
        raise wrong(name, f"{text!r} has no weight above 0")
    return tuple((kind, weight) for kind, weight in weights.items() if weight)


def read_numbers(name: str, numbers: str | tuple[int, ...]) -> tuple[int, ...]:
    """Return whole numbers: the lengths of a shape, or the levels of a series."""
    if not isinstance(numbers, str):
        return numbers
    parts = [part.strip() for part in numbers.split(",")]
    if not all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
        raise wrong(name, f"{numbers!r} are not whole numbers", hint="write them as in 1,10,100")
    return tuple(map(int, parts))


def read_names(_: str, names: str | Sequence[str]) -> tuple[str, ...]:
    """Return several names, of which a user may give a single one."""
    return (names,) if isinstance(names, str) else tuple(names)


def absolute(path: str) -> str:
    """Return the absolute path of a directory."""
    return str(Path(path).absolute())
