"""Try every guarantee in turns until its trials are done, one is broken, or the time is up."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.cost.prices import Prices, load_prices
from serverless_bench.features.qualify.guarantees import Guarantee
from serverless_bench.features.qualify.result import CheckedGuarantee, GuaranteeVerdict
from serverless_bench.features.qualify.trial import (
    BrokenError,
    Lab,
    StoreTrial,
    UnsupportedError,
    VoidError,
)

MOST_COST: Final = 0.09
"""Dollars for requests to Amazon S3 after which no trial is begun."""
_VOIDS: Final = 5
"""Trials without a result after which a guarantee is not tried again."""
_PROOF: Final = 50
"""Most requests of a proof: the last ones."""


def measure(
    lab: Lab,
    guarantees: Sequence[Guarantee],
    *,
    budget_s: float,
    show: Callable[[CheckedGuarantee], object],
) -> list[CheckedGuarantee]:
    """Return a finding for each guarantee; ``show`` receives each as soon as it is final."""
    prices, end_ns = load_prices(), monotonic_ns() + round(budget_s * NS_PER_S)
    findings = [CheckedGuarantee(guarantee=guarantee) for guarantee in guarantees]
    waiting = findings
    while waiting:
        for finding in waiting:
            if monotonic_ns() >= end_ns or cost_of(lab.requests, prices) >= MOST_COST:
                finding.is_final = True
            else:
                _go_on(finding, lab.trial())
            if finding.is_final:
                show(finding)
        waiting = [finding for finding in waiting if not finding.is_final]
    return findings


def _go_on(finding: CheckedGuarantee, trial: StoreTrial) -> None:
    """Try a guarantee once more."""
    guarantee = finding.guarantee
    try:
        finding.tries += guarantee.check(trial) or 1
    except BrokenError as exc:
        finding.tries += 1
        finding.verdict, finding.reason = GuaranteeVerdict.UNSAFE, str(exc)
        requests = sorted(trial.requests, key=lambda request: request.start_ns)[-_PROOF:]
        finding.proof = [request.to_json(requests[0].start_ns) for request in requests]
    except (UnsupportedError, VoidError) as exc:
        finding.voids += 1
        if not finding.trials:
            finding.reason = str(exc)
            if isinstance(exc, UnsupportedError):
                finding.verdict = GuaranteeVerdict.UNSUPPORTED
    else:
        finding.trials += 1
        finding.verdict, finding.reason = GuaranteeVerdict.SAFE, ""
    is_decided = finding.verdict in {GuaranteeVerdict.UNSAFE, GuaranteeVerdict.UNSUPPORTED}
    finding.is_final = is_decided or finding.trials >= guarantee.most or finding.voids >= _VOIDS


def cost_of(requests: Mapping[str, int], prices: Prices) -> float:
    """Return the price of requests on Amazon S3; deletions are free."""
    writes = sum(requests.get(kind, 0) for kind in ("PUT", "POST", "LIST"))
    reads = sum(requests.get(kind, 0) for kind in ("GET", "HEAD"))
    return writes * prices.s3_put + reads * prices.s3_get
