"""The settings of a Lambda host, and what goes wrong with Invoke requests on purpose.

A seed and the invocation decide, not the order in which requests arrive: an event of
ours says its ``index`` and ``launch``, any other is known by its number.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
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


ACCOUNT: Final = "123456789012"
"""The account number of AWS' own examples."""
MAX_TIMEOUT_S: Final = 900.0
MEMORY_MIB: Final = range(128, 10_241)
"""AWS Lambda developer guide, "Lambda quotas"."""
MIB_PER_CPU: Final = 1769
"""AWS Lambda developer guide, "Configure Lambda function memory": one vCPU."""


_LAST_PORT: Final = 65_535
_LEAST: Final = {
    "port": ("--port", 0),
    "concurrency": ("--concurrency", 0),
    "burst": ("--burst", 1),
    "launch_burst": ("--launch-burst", 1),
    "event_retries": ("--event-retries", 0),
    "retry_delay_s": ("--retry-delay", 0),
    "late_s": ("--late-s", 0),
}
"""The flag of a setting, and the least that it may be."""
_ABOVE_0: Final = {
    "event_age_s": "--event-age",
    "init_s": "--init-timeout",
    "request_per_s": "--request-rate",
    "launch_per_s": "--launch-rate",
    "cpus": "--cpus",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """How a host behaves; by default as an account without faults, limits or a wall."""

    port: int = 0
    """0 takes a free one."""
    region: str = "us-east-1"
    logs: Path | None = None
    """For what functions print; None for a directory that goes with the host."""
    fresh: bool = False
    """A new interpreter for each environment, not a fork."""
    preload: tuple[str, ...] = ()
    """Modules that created functions find imported, besides what the host's own preload."""
    share_packages: bool = False
    """Whether created functions see the packages of this installation, last."""
    passed: tuple[str, ...] = ()
    """Environment variables of the host that functions see besides ``AWS_*``."""
    concurrency: int = 1000
    """Invocations at once in the account (the default quota)."""
    request_per_s: float | None = None
    """Invoke requests per second; None has no limit."""
    burst: int = 1000
    """How many more may come at once."""
    launch_per_s: float | None = None
    """New environments of each function per second; None has no limit. AWS: 100."""
    launch_burst: int = 1000
    """How many more may come at once."""
    event_retries: int = 0
    """How often an asynchronous event that failed is delivered again; AWS: 2."""
    event_age_s: float = 60.0
    """After this long in the queue an event is dropped; AWS: 6 h."""
    retry_delay_s: float = 1.0
    """Before the first further delivery, twice that before the second; AWS: 60 s."""
    init_s: float = 60.0
    """How long an environment may take to start; AWS: 10 s, but not for 1,000 on 2 cores."""
    limit_cpu: bool = False
    cpus: float | None = None
    """Per environment; None is the share that AWS gives for the memory."""
    limit_memory: bool = True
    rules: Mapping[InvokeFault, FaultRule] = field(default_factory=dict)
    seed: int = 0
    late_s: float = 3600.0

    def __post_init__(self) -> None:
        for name, (flag, least) in _LEAST.items():
            # What is no number is not at least anything.
            if not getattr(self, name) >= least:
                raise UsageError(f"{flag} must be at least {least}, got {getattr(self, name):g}")
        for name, flag in _ABOVE_0.items():
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{flag} must be above 0, got {value:g}")
        if self.port > _LAST_PORT:
            raise UsageError(f"--port must be at most {_LAST_PORT}, got {self.port}")


def arn(region: str, name: str) -> str:
    """Return the address of a function of this host."""
    return f"arn:aws:lambda:{region}:{ACCOUNT}:function:{name}"
