"""The settings of a Lambda host, and the faults injected into Invoke requests.

Faults depend on a seed and the invocation, not on the order of requests: sbench's events contain
their ``index`` and ``launch``; other events are identified by number.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import parse_share


class InvokeFault(StrEnum):
    """Faults; the names are flags and keys of the JSON."""

    THROTTLE = "throttle"
    """429 ``TooManyRequestsException``."""
    CUT = "cut"
    """The invocation is accepted and run, but the connection is reset instead of a response."""
    DUPLICATE = "duplicate"
    """An asynchronous event is delivered twice."""
    LATE = "late"
    """An asynchronous event is held; for a duplicate, only the second delivery is."""
    DROP = "drop"
    """An asynchronous event is accepted and never delivered."""
    KILL = "kill"
    """The environment is killed as soon as it has the event, as if memory were exhausted."""


_HINT: Final = "write a rule such as 30% or 'index=3,5 launch=0'"
_WORDS: Final = ("share", "index", "launch", "times")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """Rule that selects the invocations of a fault."""

    share: float = 0.0
    """Probability for all requests."""
    index: frozenset[int] = frozenset()
    """Invocations that are always selected."""
    launch: int | None = None
    """Launch of the selected invocations; None for any."""
    times: int = 1
    """Number of requests for a listed invocation that are hit: a retry may succeed."""

    def __post_init__(self) -> None:
        if self.times < 1:
            raise UsageError(f"`times` of a fault must be at least 1, got {self.times}", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule in the text of a flag.

        Raises
        ------
        UsageError
            If the text is not a rule.
        """
        given: dict[str, Any] = {}
        for word in text.split():
            name, equals, value = word.rpartition("=")
            given[name if equals else "share"] = value
        if "index" in given:
            given["index"] = given["index"].split(",")
        return cls.from_json(given)

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the rule given by a number, or by an object with the fields' names.

        Raises
        ------
        UsageError
            If the value has a different form.
        """
        if not isinstance(value, Mapping):
            value = {"share": value}
        unknown = [name for name in value if name not in _WORDS]
        if unknown:
            raise UsageError(f"a fault has no {unknown[0]!r}", hint=_HINT)
        try:
            launch = value.get("launch")
            return cls(
                share=parse_share(str(value.get("share", 0))),
                index=frozenset(int(number) for number in value.get("index", ())),
                launch=None if launch is None else int(launch),
                times=int(value.get("times", 1)),
            )
        except (TypeError, ValueError) as exc:
            raise UsageError(f"{value!r} is not a rule", hint=_HINT) from exc


class InvokeFaultPlan:
    """Decides the faults of Invoke requests.

    Parameters
    ----------
    seed
        Number that distinguishes one plan from another.
    rules
        Rules that select the invocations of each fault.
    """

    def __init__(self, seed: int, rules: Mapping[InvokeFault, FaultRule]) -> None:
        self._seed = seed
        self._rules = dict(rules)
        self._seen: Counter[tuple[int, int]] = Counter()
        self._hits: Counter[tuple[InvokeFault, int, int]] = Counter()
        self._number = 0

    def decide(self, payload: bytes) -> frozenset[InvokeFault]:
        """Return the faults of the next request, which carries ``payload``."""
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
    import hashlib

    digest = hashlib.blake2b("\0".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / (1 << 64)


ACCOUNT: Final = "123456789012"
"""Account number in AWS' examples."""
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
    "late_s": ("--late-delay", 0),
}
"""Flag and minimum of each setting."""
_ABOVE_0: Final = {
    "event_age_s": "--event-age",
    "init_s": "--init-timeout",
    "request_per_s": "--request-rate",
    "launch_per_s": "--launch-rate",
    "cpus": "--cpus",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """Behaviour of a host; the default is an account without faults, limits or a rate limit."""

    port: int = 0
    """0 picks a free port."""
    region: str = "us-east-1"
    logs: Path | None = None
    """Directory for the output of functions; None for a directory that is removed with the host."""
    fresh: bool = False
    """Whether each environment gets a new interpreter instead of a fork."""
    preload: tuple[str, ...] = ()
    """Modules preloaded for created functions, in addition to those of the host."""
    share_packages: bool = False
    """Whether created functions see the packages of this installation, last."""
    passed: tuple[str, ...] = ()
    """Environment variables of the host that functions see in addition to ``AWS_*``."""
    concurrency: int = 1000
    """Maximum number of concurrent invocations in the account (the default quota)."""
    request_per_s: float | None = None
    """Invoke requests per second; None has no limit."""
    burst: int = 1000
    """Burst of additional requests."""
    launch_per_s: float | None = None
    """New environments of each function per second; None has no limit. AWS: 100."""
    launch_burst: int = 1000
    """Burst of additional environments."""
    event_retries: int = 0
    """Number of additional deliveries of a failed asynchronous event; AWS: 2."""
    event_age_s: float = 60.0
    """Maximum age of an event in the queue; older events are dropped. AWS: 6 h."""
    retry_delay_s: float = 1.0
    """Delay of the first additional delivery, doubled for the second; AWS: 60 s."""
    init_s: float = 60.0
    """Time limit for the start of an environment; AWS: 10 s, but not for 1,000 on 2 cores."""
    limit_cpu: bool = False
    cpus: float | None = None
    """CPUs per environment; None for the share that AWS grants for the memory."""
    limit_memory: bool = True
    rules: Mapping[InvokeFault, FaultRule] = field(default_factory=dict)
    seed: int = 0
    late_s: float = 3600.0

    def __post_init__(self) -> None:
        for name, (flag, least) in _LEAST.items():
            # This form also rejects NaN, for which all comparisons are false.
            if not getattr(self, name) >= least:
                raise UsageError(f"{flag} must be at least {least}, got {getattr(self, name):g}")
        for name, flag in _ABOVE_0.items():
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{flag} must be above 0, got {value:g}")
        if self.port > _LAST_PORT:
            raise UsageError(f"--port must be at most {_LAST_PORT}, got {self.port}")


def arn(region: str, name: str) -> str:
    """Return the ARN of a function of this host."""
    return f"arn:aws:lambda:{region}:{ACCOUNT}:function:{name}"
