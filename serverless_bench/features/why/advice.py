"""The command that finds a cause which the records of a run cannot tell."""

from collections.abc import Iterator
from typing import Final

from serverless_bench.base.escaping import for_terminal
from serverless_bench.features.bottleneck.causes import Bottleneck
from serverless_bench.features.bottleneck.part import PART as BOTTLENECK
from serverless_bench.features.cost.part import PART as BILL
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.workload import workload_of
from serverless_bench.metrics.summary import Summary

_UNATTRIBUTED: Final = frozenset({"store_or_network", "unknown"})
_LASTS_S: Final = 63.0
"""Duration of ``sbench why``."""


def next_command(summary: Summary) -> Iterator[str]:
    """Yield the command, and its price."""
    bottleneck = BOTTLENECK.results_in(summary) or Bottleneck()
    unattributed = (
        _UNATTRIBUTED & bottleneck.functions.keys() or len(bottleneck.rate_limit_of or ()) > 1
    )
    workload = workload_of(summary.workload)
    # A run directory contains no code.
    repeats = "rate" in workload.settings and not isinstance(workload, RunsCode)
    unmade = summary.simulated or summary.executor == "imported"
    if not unattributed or unmade or not repeats or summary.planned_concurrency == 1:
        return
    price, bill = "1 min", BILL.results_in(summary)
    if bill is not None and summary.elapsed_s:
        price += f", {bill.money(bill.total * _LASTS_S / summary.elapsed_s)}"
    yield f"sbench why {for_terminal(summary.argument)} ({price})"
