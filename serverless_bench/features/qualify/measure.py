"""Try every guarantee in turns until its trials are done, one is broken, or the time is up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.cost.prices import Prices, load_prices
from serverless_bench.features.qualify.guarantees import Guarantee
from serverless_bench.features.qualify.result import Finding, Verdict
from serverless_bench.features.qualify.trial import (
    BrokenError,
    Lab,
    Trial,
    UnsupportedError,
    VoidError,
)

MOST_COST: Final = 0.09
"""Dollars for requests to Amazon S3 after which no trial is begun."""
_VOIDS: Final = 5
"""Trials without a result after which a guarantee is not tried again."""
_PROOF: Final = 50
"""Most requests of a proof: the last ones."""


@dataclass(kw_only=True)
class _Progress:
    guarantee: Guarantee
    tries: int = 0
    trials: int = 0
    voids: int = 0
    verdict: Verdict | None = None
    reason: str = ""
    proof: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return (
            self.verdict is not None or self.trials >= self.guarantee.most or self.voids >= _VOIDS
        )

    def go_on(self, trial: Trial) -> None:
        try:
            self.tries += self.guarantee.check(trial) or 1
        except BrokenError as exc:
            self.verdict, self.reason = Verdict.UNSAFE, str(exc)
            requests = trial.requests[-_PROOF:]
            self.proof = [request.to_json(requests[0].start_ns) for request in requests]
        except UnsupportedError as exc:
            self.verdict, self.reason = Verdict.UNSUPPORTED, str(exc)
        except VoidError as exc:
            self.voids, self.reason = self.voids + 1, str(exc)
        else:
            self.trials += 1

    def finding(self) -> Finding:
        known = self.verdict or (Verdict.SAFE if self.tries else Verdict.UNKNOWN)
        reason = self.reason or (
            "" if self.tries else "the time or the cost was up before the first try"
        )
        return Finding(
            guarantee=self.guarantee.name,
            sentence=self.guarantee.sentence,
            users=self.guarantee.users,
            verdict=known,
            tries=self.tries + (known is Verdict.UNSAFE),
            reason="" if known is Verdict.SAFE else reason,
            proof=tuple(self.proof),
        )


def cost_of(requests: Mapping[str, int], prices: Prices) -> float:
    """Return the price of requests on Amazon S3; deletions are free."""
    writes = sum(requests.get(kind, 0) for kind in ("PUT", "POST", "LIST"))
    reads = sum(requests.get(kind, 0) for kind in ("GET", "HEAD"))
    return writes * prices.s3_put + reads * prices.s3_get


def measure(
    lab: Lab,
    guarantees: Sequence[Guarantee],
    *,
    budget_s: float,
    show: Callable[[Finding], object],
) -> list[Finding]:
    """Return a finding for each guarantee; ``show`` receives each as soon as it is final."""
    prices = load_prices()
    end_ns = monotonic_ns() + round(budget_s * NS_PER_S)
    all_progress = [_Progress(guarantee=guarantee) for guarantee in guarantees]
    open_progress = all_progress

    def is_over() -> bool:
        return monotonic_ns() >= end_ns or cost_of(lab.requests, prices) >= MOST_COST

    while open_progress and not is_over():
        for progress in open_progress:
            if is_over():
                break
            progress.go_on(lab.trial())
            if progress.is_done:
                show(progress.finding())
        open_progress = [progress for progress in open_progress if not progress.is_done]
    for progress in open_progress:
        show(progress.finding())
    return [progress.finding() for progress in all_progress]
