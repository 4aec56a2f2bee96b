"""The settings of a Lambda host."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.lab.lambda_host.faults import FaultRule, InvokeFault

ACCOUNT: Final = "123456789012"
"""The account number of AWS' own examples."""
MAX_TIMEOUT_S: Final = 900.0
MEMORY_MIB: Final = range(128, 10_241)
"""AWS Lambda developer guide, "Lambda quotas"."""
MIB_PER_CPU: Final = 1769
"""AWS Lambda developer guide, "Configure Lambda function memory": one vCPU."""


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
        for flag, value, fits, limit in (
            ("--port", self.port, self.port >= 0, "at least 0"),
            ("--port", self.port, self.port <= 65_535, "at most 65535"),
            ("--concurrency", self.concurrency, self.concurrency >= 0, "at least 0"),
            ("--burst", self.burst, self.burst >= 1, "at least 1"),
            ("--launch-burst", self.launch_burst, self.launch_burst >= 1, "at least 1"),
            ("--event-retries", self.event_retries, self.event_retries >= 0, "at least 0"),
            ("--retry-delay", self.retry_delay_s, self.retry_delay_s >= 0, "at least 0"),
            ("--late-s", self.late_s, self.late_s >= 0, "at least 0"),
            ("--event-age", self.event_age_s, self.event_age_s > 0, "above 0"),
            ("--init-timeout", self.init_s, self.init_s > 0, "above 0"),
            (
                "--request-rate",
                self.request_per_s,
                self.request_per_s is None or self.request_per_s > 0,
                "above 0",
            ),
            (
                "--launch-rate",
                self.launch_per_s,
                self.launch_per_s is None or self.launch_per_s > 0,
                "above 0",
            ),
            ("--cpus", self.cpus, self.cpus is None or self.cpus > 0, "above 0"),
        ):
            if not fits:
                raise UsageError(f"{flag} must be {limit}, got {value:g}")


def arn(region: str, name: str) -> str:
    """Return the address of a function of this host."""
    return f"arn:aws:lambda:{region}:{ACCOUNT}:function:{name}"
