"""A few cases that contain every possible pair of values of all factors.

They are stored in ``pairs.json``; after a change of ``factors`` a test asks for a new
file: ``python -m tests.combinations``.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Final

Factors = Mapping[str, Sequence[str]]
Case = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]
PAIRS: Final = Path(__file__).with_name("pairs.json")
"""The cases for CI, without default values."""


class Covering:
    """Makes cases, greedily: each has as many new pairs as a few attempts find.

    Parameters
    ----------
    factors
        The values of each factor; the first is the default.
    refused
        Impossible combinations, as parts of cases.
    seed
        Decides ties.
    """

    def __init__(
        self, factors: Factors, refused: Iterable[Mapping[str, str]], seed: int = 0
    ) -> None:
        self.factors = factors
        self.refused = [frozenset(one.items()) for one in refused]
        self.draw = random.Random(seed)

    def possible(self, case: Mapping[str, str]) -> bool:
        items = frozenset(case.items())
        return not any(one <= items for one in self.refused)

    def pairs(self, names: Sequence[str] | None = None) -> set[Pair]:
        """Return every pair of values that some case can have."""
        found = set()
        for one, other in combinations(sorted(names or self.factors), 2):
            for value, second in product(self.factors[one], self.factors[other]):
                if self.complete({one: value, other: second}) is not None:
                    found.add(((one, value), (other, second)))
        return found

    def complete(self, part: Mapping[str, str]) -> Case | None:
        """Return a case that contains this, with defaults for the rest; None if there is none."""
        case = dict(part)
        for name, values in self.factors.items():
            if name not in case:
                fitting = (value for value in values if self.possible({**case, name: value}))
                value = next(fitting, None)
                if value is None:
                    return None
                case[name] = value
        return case if self.possible(case) else None

    def cover(self) -> list[Case]:
        """Return cases that hold every pair of values."""
        missing, cases = self.pairs(), list[Case]()
        while missing:
            attempts = [self._try(missing) for _ in range(12)]
            best = max(attempts, key=lambda case: len(held_by(case, missing)))
            missing -= held_by(best, missing)
            cases.append(best)
        return cases

    def random(self) -> Case:
        """Return any case."""
        while True:
            case = {name: self.draw.choice(values) for name, values in self.factors.items()}
            if self.possible(case):
                return case

    def _try(self, missing: set[Pair]) -> Case:
        """Begin with a missing pair, and add values that cover the most of the rest."""
        case = dict(self.draw.choice(sorted(missing)))
        names = [name for name in self.factors if name not in case]
        self.draw.shuffle(names)
        for name in names:
            gains = {
                value: len(held_by({**case, name: value}, missing))
                for value in self.factors[name]
                if self.complete({**case, name: value}) is not None
            }
            # Factors that add no new pair keep their defaults.
            case[name] = max(gains, key=lambda value: gains[value])
        return case


def held_by(case: Mapping[str, str], pairs: set[Pair]) -> set[Pair]:
    """Return the pairs that a case has."""
    items = case.items()
    return {pair for pair in pairs if pair[0] in items and pair[1] in items}


def usual(factors: Factors) -> Case:
    """Return the case that needs no word."""
    return {name: values[0] for name, values in factors.items()}


def load_pairs(factors: Factors) -> list[Case]:
    """Return the cases that CI runs."""
    cases: list[Case] = json.loads(PAIRS.read_text(encoding="utf-8"))
    return [{**usual(factors), **case} for case in cases]


def save_pairs(factors: Factors, cases: Sequence[Case]) -> None:
    """Write the cases for CI, one on each line."""
    plain = usual(factors)
    shown = [{n: v for n, v in case.items() if v != plain[n]} for case in cases]
    lines = sorted(json.dumps(case, ensure_ascii=False, sort_keys=True) for case in shown)
    PAIRS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
