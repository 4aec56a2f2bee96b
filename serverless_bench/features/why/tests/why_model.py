"""Simulated runs with interventions: autocorrelated noise, drift, and known elasticities."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, pi, sqrt
from typing import Final

import numpy as np

from serverless_bench.features.why.cause import BoundBy
from serverless_bench.features.why.elasticity import Elasticity, elasticities, log_ratios
from serverless_bench.features.why.interventions import Interventions
from serverless_bench.rundir.tables import Floats

CHANGES: Final = ("thread", "cpu", "lock", "others", "bytes", "nothing")
EXPECTED: Final[Mapping[str, float]] = {
    "thread": log(1.25),
    "cpu": log(0.75),
    "lock": log(0.75),
    "others": log(2),
    "bytes": log(0.5),
    "nothing": log(0.75),
}
TRUTHS: Final[Mapping[BoundBy, Mapping[str, float]]] = {
    BoundBy.LATENCY: {"thread": 1, "bytes": 1},
    BoundBy.CONNECTION: {"thread": 1},
    BoundBy.CPU: {"cpu": 1},
    BoundBy.MACHINE: {"cpu": 1, "others": 1},
    BoundBy.LOCK: {"lock": 1},
    BoundBy.QUEUE: {"others": 1, "bytes": 1},
    BoundBy.PIPE: {"others": 1},
    BoundBy.FUNCTION_REQUESTS: {"bytes": 1},
    BoundBy.FUNCTION_NETWORK: {},
}
"""Elasticities that are not 0, by cause."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Noise of the logarithm of a rate."""

    sd: float
    memory_s: float = 0.0
    """Correlation time."""
    drift: float = 0.0
    """Amplitude of a slow wave; a walk has a quarter of it."""
    carried: float = 0.0
    """Share of a block in which the previous change still acts."""


def simulated(
    truth: Mapping[str, float],
    noise: Noise,
    seed: int,
    *,
    seconds: float = 60.0,
    block_s: float = 0.25,
) -> dict[str, Elasticity]:
    """Return the elasticities of a simulated run."""
    rng = np.random.default_rng(seed)
    count = int(seconds / block_s)
    first = int(rng.integers(0, 10_000))
    plan = Interventions(changes=CHANGES, block_s=block_s, seed=seed)
    changes = [plan.change(number) for number in range(first, first + count)]
    effects = np.array([truth.get(name, 0) * EXPECTED.get(name, 0) for name in changes])
    before = np.concatenate(([0.0], effects[:-1]))
    levels = (1 - noise.carried) * np.exp(effects) + noise.carried * np.exp(before)
    logs = np.log(levels) + _noise(noise, count, block_s, rng)
    rates = np.exp(logs)[:, None]
    return elasticities(log_ratios(changes, rates, np.ones_like(rates, dtype=bool)), EXPECTED)


def _noise(noise: Noise, count: int, block_s: float, rng: np.random.Generator) -> Floats:
    keeps = exp(-block_s / noise.memory_s) if noise.memory_s else 0.0
    steps = rng.normal(size=count) * noise.sd * sqrt(1 - keeps**2)
    values = np.empty(count)
    value = rng.normal() * noise.sd
    for number, step in enumerate(steps):
        value = keeps * value + step
        values[number] = value
    wave = np.sin(2 * pi * (np.arange(count) / count * 1.5 + rng.random()))
    walk = np.cumsum(rng.normal(size=count)) / sqrt(count)
    return values + noise.drift * (wave + walk / 4)
