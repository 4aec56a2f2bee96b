"""Sizes of objects: a fixed size, or a distribution from which each size is drawn.

::

    64MiB                                   all alike
    uniform:1MiB:8MiB                       any whole number from 1 MiB to 8 MiB
    loguniform:4KiB:64MiB                   as many from 4 to 8 KiB as from 32 to 64 MiB
    lognormal:1MiB:512KiB:1KiB:10MiB        mean and standard deviation of the size, lowest
                                            and highest; sizes beyond are set to these
    buckets:4KiB=10,64KiB=30,1MiB=60        sizes and their weights

``str(parse_sizes(text))`` parses to the same distribution.

``lognormal`` follows sai3-bench, which clamps (its ``size_generator.rs``). warp's ``--obj.size MAX
--obj.randsize`` is ``loguniform:MIN:MAX`` with MIN = MAX / 256, but at least 128 bytes
(``GetExpRandSize`` of its ``pkg/generator``); the lowest doubling differs, because warp draws it
evenly from 0.
"""

import math
import random
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, cast

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import parse_size

_HINT: Final = (
    "write 64MiB, uniform:1MiB:8MiB, loguniform:4KiB:64MiB, lognormal:MEAN:STD:MIN:MAX "
    "or buckets:4KiB=10,1MiB=90"
)
_UNITS: Final = (
    *((1 << power * 10, f"{name}iB") for power, name in ((4, "T"), (3, "G"), (2, "M"), (1, "K"))),
    *((10 ** (power * 3), f"{name}B") for power, name in ((4, "T"), (3, "G"), (2, "M"), (1, "k"))),
)


@dataclass(frozen=True, slots=True)
class Uniform:
    """All sizes between two bounds, inclusive, are equally likely."""

    low: int
    high: int

    def draw(self, source: random.Random) -> int:
        return source.randint(self.low, self.high)

    def mean(self) -> float:
        return (self.low + self.high) / 2

    def maximum(self) -> int:
        return self.high

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}:{size_text(self.low)}:{size_text(self.high)}"


class Fixed(Uniform):
    """All objects have one size: the lowest is the highest."""

    __slots__ = ()

    def __str__(self) -> str:
        return size_text(self.high)


class LogUniform(Uniform):
    """The logarithm is uniform: all doublings are equally likely."""

    def draw(self, source: random.Random) -> int:
        size = round(math.exp(source.uniform(math.log(self.low), math.log(self.high))))
        return max(self.low, min(self.high, size))

    def mean(self) -> float:
        if self.low == self.high:
            return float(self.low)
        return (self.high - self.low) / math.log(self.high / self.low)


def _below(value: float, mean: float, deviation: float) -> float:
    """Return the probability that a normal variable is below a value, without ``statistics``."""
    return 0.5 * math.erfc((mean - value) / (deviation * math.sqrt(2)))


@dataclass(frozen=True, slots=True)
class LogNormal(Uniform):
    """The logarithm is normal; sizes out of bounds are set to the bound.

    Parameters
    ----------
    low, high
        The bounds.
    centre, deviation
        Mean and standard deviation of the size without bounds, in bytes.
    """

    centre: int
    deviation: int

    def draw(self, source: random.Random) -> int:
        exponent = source.gauss(*self._normal())
        # Above the bound, exp() may overflow a float.
        if exponent >= math.log(self.high):
            return self.high
        return max(self.low, round(math.exp(exponent)))

    def mean(self) -> float:
        """Return the mean of the clamped distribution."""
        mean, deviation = self._normal()
        low, high = math.log(self.low), math.log(self.high)
        # E[X; a < X < b] of a lognormal X is its mean times P(a < Y < b), where log Y has the same
        # deviation and a mean that is larger by the variance.
        shifted = mean + deviation**2
        between = self.centre * (_below(high, shifted, deviation) - _below(low, shifted, deviation))
        at_least = self.low * _below(low, mean, deviation)
        return at_least + between + self.high * (1 - _below(high, mean, deviation))

    def _normal(self) -> tuple[float, float]:
        """Return mean and deviation of the logarithm."""
        variance = math.log1p((self.deviation / self.centre) ** 2)
        return math.log(self.centre) - variance / 2, math.sqrt(variance)

    def __str__(self) -> str:
        numbers = (self.centre, self.deviation, self.low, self.high)
        return "lognormal:" + ":".join(map(size_text, numbers))


@dataclass(frozen=True, slots=True)
class Buckets:
    """A few sizes, each with a weight."""

    pairs: tuple[tuple[int, float], ...]

    def draw(self, source: random.Random) -> int:
        sizes, weights = zip(*self.pairs, strict=True)
        return cast("int", source.choices(sizes, cum_weights=list(accumulate(weights)))[0])

    def mean(self) -> float:
        total = math.fsum(weight for _, weight in self.pairs)
        return math.fsum(size * weight for size, weight in self.pairs) / total

    def maximum(self) -> int:
        return max(size for size, weight in self.pairs if weight)

    def __str__(self) -> str:
        return "buckets:" + ",".join(
            f"{size_text(size)}={weight:.15g}" for size, weight in self.pairs
        )


Sizes = Uniform | Buckets
"""A distribution of object sizes, in whole bytes from 1 on: has ``draw``, ``mean`` and
``maximum``."""


def parse_sizes(text: str) -> Sizes:
    """Return the distribution described by a text; the module docstring has the forms.

    Raises
    ------
    UsageError
        If the text is invalid.
    """
    # Cached, because a function parses the text again for each of its objects.
    return _parsed(text.strip())


@lru_cache(maxsize=64)
def _parsed(text: str) -> Sizes:
    kind, colon, rest = text.partition(":")
    if not colon:
        size = parse_size(text)
        return Fixed(size, size)
    if kind == "buckets":
        return _buckets(rest)
    if kind == "lognormal":
        centre, deviation, low, high = _numbers(kind, rest, "MEAN:STD:MIN:MAX")
        return LogNormal(low, high, centre, deviation)
    if kind not in {"uniform", "loguniform"}:
        raise UsageError(f"{text!r} is not a distribution of sizes", hint=_HINT)
    low, high = _numbers(kind, rest, "MIN:MAX")
    return Uniform(low, high) if kind == "uniform" else LogUniform(low, high)


def _buckets(rest: str) -> Sizes:
    pairs = []
    for pair in rest.split(","):
        size, equals, weight = pair.partition("=")
        if not equals or not re.fullmatch(r"\d+(\.\d+)?(e[-+]?\d+)?", weight.strip()):
            raise UsageError(f"{pair!r} is not a size with a weight", hint="as in buckets:4KiB=10")
        pairs.append((parse_size(size), float(weight)))
    if not 0 < math.fsum(weight for _, weight in pairs) < math.inf:
        raise UsageError(f"'buckets:{rest}' has no weight above 0, or too large ones", hint=_HINT)
    return Buckets(tuple(pairs))


def _numbers(kind: str, rest: str, form: str) -> list[int]:
    parts = rest.split(":")
    if len(parts) != form.count(":") + 1:
        raise UsageError(f"'{kind}:{rest}' has {len(parts)} sizes", hint=f"write {kind}:{form}")
    sizes = [parse_size(part) for part in parts]
    low, high = sizes[-2:]
    if low > high:
        raise UsageError(
            f"'{kind}:{rest}' has a lowest size above the highest", hint=f"write {kind}:{form}"
        )
    return sizes


def size_text(size: int) -> str:
    """Return a size as ``parse_size`` accepts it, in the unit that needs the fewest characters."""
    whole = (f"{size // factor}{unit}" for factor, unit in _UNITS if size % factor == 0)
    return min((*whole, str(size)), key=len)
