"""Several tests judged as one family. Pure."""

from collections.abc import Hashable, Mapping
from itertools import accumulate
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return p of each comparison as one of all of them (Holm 1979).

    Whoever believes all whose adjusted p is at most 5 % believes nothing false in 95 % of
    such families, however the comparisons depend on each other.
    """
    keys = sorted(p, key=lambda key: p[key])
    adjusted = (min(1.0, (len(p) - place) * p[key]) for place, key in enumerate(keys))
    return dict(zip(keys, accumulate(adjusted, max), strict=True))
