"""What a run that ran on AWS Lambda will be billed, from its records. Pure.

AWS bills each invocation from the start of its handler to its return, rounded up to a
millisecond, and a cold one's initialisation as well (AWS Lambda pricing; the latter since
2025-08-01). A record has the time between its claim and its own writing, and how long the
imports took; ``CONTROL_S`` stands for the two requests around it.

Tries that the store answered with 5xx are free (Amazon S3 user guide, "Billing for Amazon
S3 error responses"); so are deletions and aborts of uploads, and tries without an answer
count. HEAD costs what GET costs; COPY and LIST cost what PUT costs (Amazon S3 pricing).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from serverless_bench.archive import Run
from serverless_bench.columns import ABSENT, Ints, Mask, is_text
from serverless_bench.cost.forecast import (
    CONTROL_GETS,
    CONTROL_LISTS,
    CONTROL_PUTS,
    LOG_BYTES,
    forecast,
    load_of,
)
from serverless_bench.cost.prices import Prices, load_prices
from serverless_bench.cost.usage import HOURS_PER_MONTH, Dollars, Usage, price
from serverless_bench.record import Lost, Outcome
from serverless_bench.spec import JobSpec
from serverless_bench.units import GIB, NS_PER_S

CONTROL_S: Final = 0.1
"""Of an invocation, for its claim and its record: two puts of some 40 ms (Skyrise, EDBT
2025, section 4.3.3, median put of 1 KiB)."""
_NS_PER_MS: Final = 1_000_000
_FREE: Final = ("abort_multipart", "delete", "delete_many")
_GET_CLASS: Final = ("get", "head")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a run is billed, without storage, next to what it was expected to be."""

    as_of: str
    """Of the prices."""
    region: str
    currency: str
    genuine: bool
    """Whether functions and store were AWS's, as far as the store's address tells."""
    architecture: str
    total: float
    dollars: Dollars
    estimate: float | None
    """What ``forecast`` says of the same job; None if it cannot know the objects' size."""
    error: float | None
    """``estimate / total - 1``."""
    invocations: int
    """That left a record, and are hence in the bill."""
    billed_s: float
    gb_s: float
    requests: Mapping[str, int]
    """Billed tries by kind; those of the control prefix under ``control``."""
    unknown: int
    """Invocations without a record: not in the bill."""
    unknown_at_most: float
    """What they cost if each ran until the deadline."""
    storage_per_h: float
    """For what the run wrote, as long as it is kept."""

    @property
    def storage_per_month(self) -> float:
        """The same, if it is forgotten."""
        return self.storage_per_h * HOURS_PER_MONTH


def bill(run: Run, prices: Prices | None = None) -> Bill | None:
    """Return the bill of a run; None if its functions had no memory size, hence no price.

    Parameters
    ----------
    run
        A saved run.
    prices
        None takes those that come with sbench.
    """
    there = (run.functions["memory_mib"] != ABSENT) & (run.functions["start_ns"] != ABSENT)
    if not there.any():
        return None
    prices = prices or load_prices()
    usage = _usage(run, there)
    dollars = price(usage, prices)
    estimate = _estimate(run, there, usage.architecture, prices)
    lost = _lost(run)
    memory = float(run.functions["memory_mib"][there].max())
    at_most = Usage(
        architecture=usage.architecture,
        gb_s=lost * run.job.deadline_s * memory / 1024,
        invocations=lost,
    )
    return Bill(
        as_of=prices.as_of,
        region=prices.region,
        currency=prices.currency,
        genuine=_genuine(run.job.target.endpoint_url),
        architecture=usage.architecture,
        total=dollars.total,
        dollars=dollars,
        estimate=estimate,
        error=None if estimate is None or not dollars.total else estimate / dollars.total - 1,
        invocations=usage.invocations,
        billed_s=float(billed_ns(run, there).sum()) / NS_PER_S,
        gb_s=usage.gb_s,
        requests=_requests(run) | {"control": usage.control_puts + usage.control_gets},
        unknown=lost,
        unknown_at_most=price(at_most, prices).total,
        storage_per_h=_storage_per_h(run, prices),
    )


def outcome_usage(outcome: Outcome, job: JobSpec, *, memory_mib: int, architecture: str) -> Usage:
    """Return what one outcome adds to the bill.

    Parameters
    ----------
    outcome
        As the executor yields it. One without a record counts as if it had run from its
        submission until it was given up, unless it is certain that it never began.
    job
        Whose.
    memory_mib
        For functions that do not say what they have.
    architecture
        As in ``Load``.
    """
    result, controlled = outcome.result, job.control is not None
    if isinstance(result, Lost):
        limit_ns = round(job.deadline_s * NS_PER_S)
        spent_ns = min(outcome.collected_ns - outcome.submitted_ns, limit_ns)
        billed = 0 if result.never_began else spent_ns
        return Usage(
            architecture=architecture,
            gb_s=max(0, billed) / NS_PER_S * memory_mib / 1024,
            invocations=int(not result.never_began),
        )
    spent_ns = result.end_ns - result.start_ns + (result.import_ns or 0)
    spent_ns += round(CONTROL_S * NS_PER_S) if controlled else 0
    billed_ms = -(-spent_ns // _NS_PER_MS)
    billed_tries = [
        a.request for a in result.attempts if (a.status or 0) < 500 and a.request not in _FREE
    ]
    gets = sum(billed_tries.count(name) for name in _GET_CLASS)
    return Usage(
        architecture=architecture,
        gb_s=billed_ms / 1000 * (result.memory_mib or memory_mib) / 1024,
        invocations=1,
        puts=len(billed_tries) - gets,
        gets=gets,
        control_puts=CONTROL_PUTS * controlled,
        control_gets=round(CONTROL_GETS) * controlled,
        log_bytes=LOG_BYTES,
    )


def billed_ns(run: Run, there: Mask) -> Ints:
    """Return the billed time of each invocation that left a record, a whole number of ms."""
    functions = run.functions
    spent = functions["end_ns"][there] - functions["start_ns"][there]
    imports = np.maximum(functions["import_ns"][there], 0)
    control = round(CONTROL_S * NS_PER_S) if run.job.control else 0
    return np.asarray(-(-(spent + imports + control) // _NS_PER_MS) * _NS_PER_MS, dtype=np.int64)


def _usage(run: Run, there: Mask) -> Usage:
    count, requests = int(there.sum()), _requests(run)
    gets = sum(requests.pop(name, 0) for name in _GET_CLASS)
    controlled = count if run.job.control else 0
    gib = run.functions["memory_mib"][there] / 1024
    return Usage(
        architecture=_architecture(run, there),
        gb_s=float((billed_ns(run, there) / NS_PER_S * gib).sum()),
        invocations=count,
        puts=sum(requests.values()),
        gets=gets,
        control_puts=CONTROL_PUTS * controlled + math.ceil(CONTROL_LISTS * controlled),
        control_gets=round(CONTROL_GETS * controlled),
        log_bytes=LOG_BYTES * count,
    )


def _requests(run: Run) -> dict[str, int]:
    """Return the billed tries by kind."""
    attempts = run.attempts
    billed = attempts["status"] < 500
    for name in _FREE:
        billed &= ~is_text(attempts["request"], name)
    kinds, counts = np.unique(attempts["request"][billed].astype(str), return_counts=True)
    return {str(kind): int(count) for kind, count in zip(kinds, counts, strict=True)}


def _architecture(run: Run, there: Mask) -> str:
    arm = is_text(run.functions["machine"], "aarch64") | is_text(run.functions["machine"], "arm64")
    return "arm64" if arm[there].any() else "x86_64"


def _estimate(run: Run, there: Mask, architecture: str, prices: Prices) -> float | None:
    size = run.job.object_bytes
    if size is None:
        declared = run.operations["size"][run.operations["size"] != ABSENT]
        if not len(declared):
            return None
        size = round(float(declared.mean()))
    load = load_of(
        run.job,
        object_bytes=size,
        memory_mib=int(np.median(run.functions["memory_mib"][there])),
        architecture=architecture,
    )
    return None if load is None else price(forecast(load).usage, prices).total


def _lost(run: Run) -> int:
    """Return how many invocations were made, or may have been, and left no record."""
    functions = run.functions
    return int(((functions["start_ns"] == ABSENT) & (functions["never_began"] != 1)).sum())


def _storage_per_h(run: Run, prices: Prices) -> float:
    puts = is_text(run.operations["kind"], "put") & is_text(run.operations["error"], None)
    # With a duration or a warm-up an object is written again and again, and stays once.
    row = run.operations["function"][puts]
    kept = min(int(puts.sum()), len(np.unique(row)) * run.job.objects) * (run.job.object_bytes or 0)
    return kept / GIB * prices.s3_storage_gb_month / HOURS_PER_MONTH


def _genuine(endpoint_url: str) -> bool:
    host = urlsplit(endpoint_url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
