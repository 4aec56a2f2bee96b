"""Few cases that hold every pair of values of all factors, as far as these are possible."""

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

Factors = Mapping[str, Sequence[str]]
Case = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]


class Covering:
    """Makes cases, greedily: each holds as many new pairs as a few tries find.

    Parameters
    ----------
    factors
        The values of each factor; the first is the one that needs no word.
    refused
        What cannot stand together, in parts of cases.
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
        """Return a case with this in it, and else what needs no word; None if there is none."""
        case = dict(part)
        for name, values in self.factors.items():
            if name not in case:
                fitting = (value for value in values if self.possible({**case, name: value}))
                value = next(fitting, None)
                if value is None:
                    return None
                case[name] = value
        return case if self.possible(case) else None

    def cover(self, names: Sequence[str]) -> list[Case]:
        """Return cases that hold every pair of these factors, and every value of all."""
        missing = self.pairs(names)
        lonely = {(name, value) for name, values in self.factors.items() for value in values}
        cases = []
        while missing or lonely:
            tries = [self._try(missing, lonely) for _ in range(12)]
            best = max(tries, key=lambda case: self._gain(case, missing, lonely))
            held = set(best.items())
            missing -= {pair for pair in missing if set(pair) <= held}
            lonely -= held
            cases.append(best)
        return cases

    def random(self) -> Case:
        """Return any case."""
        while True:
            case = {name: self.draw.choice(values) for name, values in self.factors.items()}
            if self.possible(case):
                return case

    def _gain(self, case: Case, missing: set[Pair], lonely: set[tuple[str, str]]) -> int:
        held = set(case.items())
        return sum(set(pair) <= held for pair in missing) + len(lonely & held)

    def _try(self, missing: set[Pair], lonely: set[tuple[str, str]]) -> Case:
        """Begin with something that is missing, and add what brings the most of the rest."""
        begin: Sequence[tuple[str, str]]
        begin = self.draw.choice(sorted(missing)) if missing else [self.draw.choice(sorted(lonely))]
        case = dict(begin)
        names = [name for name in self.factors if name not in case]
        self.draw.shuffle(names)
        for name in names:
            fitting = [
                value
                for value in self.factors[name]
                if self.complete({**case, name: value}) is not None
            ]
            gains = {
                value: sum(
                    (name, value) in pair and set(pair) <= {*case.items(), (name, value)}
                    for pair in missing
                )
                + ((name, value) in lonely)
                for value in fitting
            }
            # What brings nothing new is left at what needs no word.
            case[name] = max(fitting, key=lambda value: gains[value])
        return case
