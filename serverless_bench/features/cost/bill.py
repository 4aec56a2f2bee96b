"""Compute the bill of a run on AWS Lambda from its records. Pure.

AWS bills each invocation from the start of its handler to its return, rounded up to a
millisecond, and the initialisation of a cold environment (AWS Lambda pricing; the latter since
2025-08-01). A record has the time between its claim and its own writing, and the time of the
imports; ``CONTROL_S`` is added for the two requests before and after. ``requests`` counts the
requests. Probes of the functions before the run are billed like all invocations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from serverless_bench.base.units import GIB, NS_PER_S
from serverless_bench.features.cost.expected import at_most, expected
from serverless_bench.features.cost.forecast import LOG_BYTES, VCPU_MIB, CostConditions
from serverless_bench.features.cost.places import placed, regions
from serverless_bench.features.cost.prices import (
    HOURS_PER_MONTH,
    BilledUsage,
    Dollars,
    Prices,
    format_money,
    origin,
    price,
    prices_for,
    transfer_text,
)
from serverless_bench.features.cost.requests import Requests, requests_of, requests_of_record
from serverless_bench.job.endpoint import is_billed_by_aws
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import Lost, Outcome
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Ints, Mask, distinct, is_one_of, is_text

CONTROL_S: Final = 0.1
"""Time of an invocation for its claim and its record: two puts of about 40 ms (Skyrise, EDBT
2025, section 4.3.3, median put of 1 KiB)."""
_NS_PER_MS: Final = 1_000_000
_MAKING: Final = frozenset({"append_array", "copy", "put", "write_array"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Bill of a run, without storage, and the estimate made from the job.

    figures.toml defines each figure.
    """

    as_of: str
    region: str
    run_regions: tuple[str, ...] | None
    currency: str
    on_aws: bool
    architecture: str
    total: float
    dollars: Dollars
    estimate: float | None
    estimate_error: float | None
    invocations: int
    billed_s: float
    gb_s: float
    cross_region_bytes: int | None
    internet_bytes: int | None
    extra_costs: Mapping[str, float] | None
    requests: Mapping[str, int]
    overhead: Mapping[str, Mapping[str, int]]
    requests_exact: bool
    unknown: int
    unknown_at_most: float
    storage_per_h: float

    @property
    def storage_per_month(self) -> float:
        """Cost of the objects per month until they are deleted."""
        return self.storage_per_h * HOURS_PER_MONTH

    def money(self, amount: float) -> str:
        """Format an amount in the currency of the bill."""
        return format_money(amount, self.currency)

    def transferred(self) -> str:
        """Describe the bytes that left a region or AWS; empty if there are none."""
        return transfer_text(self.cross_region_bytes or 0, self.internet_bytes or 0)

    def origin(self) -> str:
        """Return day and region of the prices, and the regions of the run if they are different."""
        return origin(self.as_of, self.region, self.run_regions or ())


def bill(run: Run, prices: Prices | None = None) -> Bill | None:
    """Return the bill of a run; None without prices for its functions or its objects.

    Functions without a memory size ran on machines that AWS does not bill: the bill then has only
    their requests, if these went to AWS.

    Parameters
    ----------
    run
        A saved run.
    prices
        Prices to use; None for those that come with sbench.
    """
    began = run.functions["start_ns"] != ABSENT
    there = began & (run.functions["memory_mib"] != ABSENT)
    on_aws = is_billed_by_aws(run.job.target.endpoint_url)
    if not there.any() and not (began.any() and on_aws):
        return None
    prices = prices_for(run.job, prices)
    if prices is None:
        return None
    requests = requests_of(run)
    usage = _usage(run, there, requests)
    dollars = price(usage, prices)
    setting = conditions_of(run)
    foreseen = expected(run.job, setting)
    estimate = None if foreseen is None else price(_as_billed(foreseen.usage, there), prices).total
    lost = _lost(run)
    probed_s = sum(one["billed_ms"] for one in run.probed) / 1000
    return Bill(
        as_of=prices.as_of,
        region=prices.region,
        run_regions=regions(run.job) or None,
        currency=prices.currency,
        on_aws=on_aws,
        architecture=usage.architecture,
        total=dollars.total,
        dollars=dollars,
        estimate=estimate,
        estimate_error=None
        if estimate is None or not dollars.total
        else estimate / dollars.total - 1,
        invocations=usage.invocations,
        billed_s=float(billed_ns(run, there).sum()) / NS_PER_S + probed_s,
        gb_s=usage.gb_s,
        cross_region_bytes=usage.cross_region_bytes or None,
        internet_bytes=usage.internet_bytes if usage.foreign else None,
        extra_costs=_extra_costs(run, there, requests, prices) or None,
        requests={
            **requests.data,
            **{name: sum(counts.values()) for name, counts in requests.overhead.items()},
        },
        overhead=requests.overhead,
        requests_exact=requests.exact,
        unknown=lost,
        unknown_at_most=lost * _lost_at_most(run, there, setting, prices),
        storage_per_h=_storage_per_h(run, prices),
    )


def outcome_usage(
    outcome: Outcome, job: JobSpec, *, memory_mib: int, architecture: str
) -> BilledUsage:
    """Return the billed usage of an outcome.

    Parameters
    ----------
    outcome
        Outcome from the executor. Without a record, the invocation counts as running from its
        submission until it was given up, unless it certainly never began.
    job
        Job of the outcome.
    memory_mib
        Memory of functions that do not report it.
    architecture
        arm64 or x86_64.
    """
    result, controlled = outcome.result, job.control is not None
    if isinstance(result, Lost):
        spent_ns = min(outcome.collected_ns - outcome.submitted_ns, round(job.deadline * NS_PER_S))
        billed_s = 0.0 if result.not_started else max(0, spent_ns) / NS_PER_S
        setting = CostConditions(memory_mib=memory_mib, architecture=architecture)
        # Its transfers until then are billed, too.
        most = at_most(replace(job, deadline=billed_s), setting) if billed_s else BilledUsage()
        return BilledUsage(
            architecture=architecture,
            gb_s=billed_s * memory_mib / 1024,
            invocations=int(not result.not_started),
            cross_region_bytes=most.cross_region_bytes,
            internet_bytes=most.internet_bytes,
        )
    spent_ns = result.end_ns - result.start_ns + (result.import_ns or 0)
    spent_ns += round(CONTROL_S * NS_PER_S) if controlled else 0
    billed_ms = -(-spent_ns // _NS_PER_MS)
    requests = requests_of_record(result, job)
    return replace(
        _requests_usage(job, requests, leave=True),
        architecture=architecture,
        gb_s=billed_ms / 1000 * (result.memory_mib or memory_mib) / 1024,
        invocations=1,
        log_bytes=LOG_BYTES,
    )


def _requests_usage(job: JobSpec, requests: Requests, *, leave: bool) -> BilledUsage:
    """Return the usage of requests and of their bytes, which ``leave`` the functions' region."""
    sent, received = requests.sent * leave, requests.received * leave
    return BilledUsage(**placed(job, sent=sent, received=received), **requests.billed())


def billed_ns(run: Run, there: Mask) -> Ints:
    """Return the billed time of each invocation with a record, in whole milliseconds."""
    functions = run.functions
    spent = functions["end_ns"][there] - functions["start_ns"][there]
    imports = np.maximum(functions["import_ns"][there], 0)
    control = round(CONTROL_S * NS_PER_S) if run.job.control else 0
    return np.asarray(-(-(spent + imports + control) // _NS_PER_MS) * _NS_PER_MS, dtype=np.int64)


def _usage(run: Run, there: Mask, requests: Requests) -> BilledUsage:
    count = int(there.sum()) + len(run.probed)
    gib = run.functions["memory_mib"][there] / 1024
    probed = sum(one["billed_ms"] / 1000 * (one["memory_mib"] or 0) / 1024 for one in run.probed)
    return replace(
        _requests_usage(run.job, requests, leave=bool(there.any())),
        architecture=_architecture(run, there),
        gb_s=float((billed_ns(run, there) / NS_PER_S * gib).sum()) + probed,
        invocations=count,
        log_bytes=LOG_BYTES * count,
    )


def _extra_costs(run: Run, there: Mask, requests: Requests, prices: Prices) -> dict[str, float]:
    """Return the additional cost if the bytes took a more expensive route than assumed."""
    # It is unknown whether a VPC has a gateway endpoint, which is free, or a NAT gateway.
    in_vpc = there.any() and any(one.get("in_vpc") for one in run.probed)
    moved = requests.sent + requests.received
    found = {
        "nat": moved / GIB * prices.network_nat_gb if in_vpc else 0.0,
        "internet": 0.0 if there.any() else requests.received / GIB * prices.network_internet_gb,
    }
    return {name: amount for name, amount in found.items() if amount}


def _as_billed(usage: BilledUsage, there: Mask) -> BilledUsage:
    """Return the usage without functions, if none of them ran on AWS Lambda."""
    return usage if there.any() else replace(usage, gb_s=0.0, invocations=0, log_bytes=0)


def _architecture(run: Run, there: Mask) -> str:
    arm = is_text(run.functions["machine"], "aarch64") | is_text(run.functions["machine"], "arm64")
    return "arm64" if arm[there].any() else "x86_64"


def conditions_of(run: Run) -> CostConditions:
    """Return the conditions of a run, as far as it has recorded them."""
    there = (run.functions["start_ns"] != ABSENT) & (run.functions["memory_mib"] != ABSENT)
    declared = run.operations["size"][run.operations["size"] != ABSENT]
    return CostConditions(
        memory_mib=int(np.median(run.functions["memory_mib"][there])) if there.any() else VCPU_MIB,
        architecture=_architecture(run, there),
        object_bytes=round(float(declared.mean())) if len(declared) else None,
    )


def _lost(run: Run) -> int:
    """Return the number of invocations that ran, or may have run, without leaving a record."""
    functions = run.functions
    there, silent = functions["start_ns"] != ABSENT, functions["not_started"] != 1
    launch = functions["index"], functions["launch"]
    # A record may come after the launch was given up.
    came = {*zip(*(column[there].tolist() for column in launch), strict=True)}
    given_up = zip(*(column[~there & silent].tolist() for column in launch), strict=True)
    return sum(1 for one in given_up if one not in came)


def _lost_at_most(run: Run, there: Mask, setting: CostConditions, prices: Prices) -> float:
    """Return the maximum cost of a function without a record."""
    memory = int(run.functions["memory_mib"].max(where=there, initial=0)) or setting.memory_mib
    usage = at_most(run.job, replace(setting, memory_mib=memory))
    return price(_as_billed(usage, there), prices).total


def _storage_per_h(run: Run, prices: Prices) -> float:
    kept = sum(_kept(run).values()) if "key" in run.operations else _kept_at_most(run)
    return price(BilledUsage(**placed(run.job), storage_byte_h=kept), prices).storage


def _kept(run: Run) -> dict[str, int]:
    """Return the objects that exist after the run, with their sizes."""
    operations, kept = run.operations, dict[str, int]()
    rows = np.flatnonzero(is_text(operations["error"], None))
    rows = rows[np.argsort(operations["end_ns"][rows], kind="stable")]
    names = ("kind", "key", "size")
    for kind, key, size in zip(*(operations[name][rows] for name in names), strict=True):
        if kind in _MAKING:
            kept[key] = max(0, int(size))
        elif kind in {"delete", "delete_many"}:
            kept.pop(key, None)
    return kept


def _kept_at_most(run: Run) -> int:
    """Return the maximum number of bytes that exist after the run, without using the keys."""
    operations, job = run.operations, run.job
    made = is_text(operations["error"], None) & (operations["size"] != ABSENT)
    made &= is_one_of(operations["kind"], _MAKING)
    if not made.any():
        return 0
    # With a duration or a warm-up, an object is written repeatedly but exists once.
    places = len(distinct(operations["function"][made])) * job.objects
    if job.load.is_drawn:
        places *= 4  # new ones, and a copy of each
    return round(min(int(made.sum()), places) * float(operations["size"][made].mean()))
