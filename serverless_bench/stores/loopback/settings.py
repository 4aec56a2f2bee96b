"""What a loopback store is told when it starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from serverless_bench.errors import UsageError
from serverless_bench.stores.loopback.faults import FaultKind
from serverless_bench.stores.loopback.shaping import Shape


class Check(StrEnum):
    """What happens to the bytes of an upload."""

    FULL = "full"
    """All are compared with the keystream of their key."""
    NONE = "none"
    """They are read and forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a loopback store behaves; by default as a store without faults or limits."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    tls: Path | None = None
    """Certificate and key in one PEM file; None speaks plain HTTP."""
    check: Check = Check.FULL
    strict: bool = False
    """Whether only keys exist that were written to this server."""
    seed: int = 0
    """Decides which request fails, how, and how long each one waits."""
    rates: Mapping[FaultKind, float] = field(default_factory=dict)
    """Share of the requests that each fault may hit, 0 to 1."""
    flip_bits: int = 3
    """Bits in different bytes that ``FaultKind.FLIP`` turns over."""
    log: Path | None = None
    """Where injected faults are written, one JSON line each."""
    witness: Path | None = None
    """Where every request is written, one JSON line each."""
    shape: Shape = field(default_factory=Shape)
    clock_skew_s: float = 0.0
    """Added to the time of day in every answer."""

    def __post_init__(self) -> None:
        for kind, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise UsageError(f"--{kind} must be between 0 and 1, got {rate:g}")
        if self.flip_bits < 1:
            raise UsageError(f"--flip-bits must be at least 1, got {self.flip_bits}")
