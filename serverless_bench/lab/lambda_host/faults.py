"""What goes wrong with Invoke requests on purpose.

A seed and the invocation decide, not the order in which requests arrive: an event of
ours says its ``index`` and ``launch``, any other is known by its number.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from serverless_bench.errors import UsageError


class InvokeFault(StrEnum):
    """What can go wrong; the words are flags and keys of the JSON."""

    THROTTLE = "throttle"
    """429 ``TooManyRequestsException``."""
    CUT = "cut"
    """Accepted and run, but the connection is reset in place of an answer."""
    DUPLICATE = "duplicate"
    """An asynchronous event is delivered twice."""
    LATE = "late"
    """An asynchronous event is held; of a duplicate, the second delivery is."""
    DROP = "drop"
    """An asynchronous event is accepted and never delivered."""
    KILL = "kill"
    """The environment is killed as soon as it has the event, as when memory runs out."""


_HINT: Final = "a rule is like 0.3 or 'index=3,5 launch=0'"
_WORDS: Final = ("share", "index", "launch", "times")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """Which invocations a fault hits."""

    share: float = 0.0
    """Of all requests."""
    index: frozenset[int] = frozenset()
    """These invocations in any case."""
    launch: int | None = None
    """Only invocations of this launch; None does not care."""
    times: int = 1
    """How many requests for a listed invocation are hit: what is tried again may pass."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise UsageError(f"the share of a fault is 0 to 1, got {self.share:g}", hint=_HINT)
        if self.times < 1:
            raise UsageError(f"a fault happens at least once, got {self.times}", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule that a flag says.

        Raises
        ------
        UsageError
            If it is none.
        """
        given: dict[str, Any] = {}
        for word in text.split():
            name, equals, value = word.rpartition("=")
            given[name if equals else "share"] = value
        if "index" in given:
            given["index"] = given["index"].split(",")
        return cls.from_json(given)

    @classmethod
    def from_json(cls, value: Any) -> Self:  # noqa: ANN401 - whatever somebody sent
        """Return the rule that a number, or an object with the fields' names, is.

        Raises
        ------
        UsageError
            If it is neither.
        """
        if not isinstance(value, Mapping):
            value = {"share": value}
        unknown = [name for name in value if name not in _WORDS]
        if unknown:
            raise UsageError(f"a fault has no {unknown[0]!r}", hint=_HINT)
        try:
            launch = value.get("launch")
            return cls(
                share=float(value.get("share", 0)),
                index=frozenset(int(number) for number in value.get("index", ())),
                launch=None if launch is None else int(launch),
                times=int(value.get("times", 1)),
            )
        except (TypeError, ValueError) as exc:
            raise UsageError(f"not a fault: {exc}", hint=_HINT) from exc


class InvokeFaultPlan:
    """Decides for every Invoke request.

    Parameters
    ----------
    seed
        Makes one plan differ from another.
    rules
        Which invocations each fault hits.
    """

    def __init__(self, seed: int, rules: Mapping[InvokeFault, FaultRule]) -> None:
        self._seed = seed
        self._rules = dict(rules)
        self._seen: Counter[tuple[int, int]] = Counter()
        self._hits: Counter[tuple[InvokeFault, int, int]] = Counter()
        self._number = 0

    def decide(self, payload: bytes) -> frozenset[InvokeFault]:
        """Return what happens to the next request, which carries ``payload``."""
        if not self._rules:
            return frozenset()
        self._number += 1
        who = _identity(payload)
        number = self._number
        if who is not None:
            number = self._seen[who]
            self._seen[who] += 1
        return frozenset(
            kind for kind, rule in self._rules.items() if self._hits_it(kind, rule, who, number)
        )

    def _hits_it(
        self, kind: InvokeFault, rule: FaultRule, who: tuple[int, int] | None, number: int
    ) -> bool:
        if rule.launch is not None and (who is None or who[1] != rule.launch):
            return False
        if who is not None and who[0] in rule.index and self._hits[kind, *who] < rule.times:
            self._hits[kind, *who] += 1
            return True
        return _uniform(self._seed, kind, who, number) < rule.share


def _identity(payload: bytes) -> tuple[int, int] | None:
    event = json.loads(payload)
    if not isinstance(event, dict):
        return None
    index, launch = event.get("index"), event.get("launch", 0)
    return (index, launch) if isinstance(index, int) and isinstance(launch, int) else None


def _uniform(*words: object) -> float:
    digest = hashlib.blake2b("\0".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / (1 << 64)
