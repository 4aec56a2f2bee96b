"""``sbench aws try``: a few functions for less than a cent, and a plan for 1,000."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import numpy as np

from serverless_bench.base.errors import INCOMPLETE, CostError
from serverless_bench.base.units import GIB, NS_PER_S, format_per_s, format_rate, format_seconds
from serverless_bench.driver.task import CostLimit, Listener, Spending, Task
from serverless_bench.features.aws.account import ConcurrencyLimits
from serverless_bench.features.compare.runs import JobSeries
from serverless_bench.features.cost.budget import Budget
from serverless_bench.features.cost.forecast import sustained_bytes_per_s
from serverless_bench.features.cost.model import AWS_LAMBDA
from serverless_bench.features.cost.outlook import JobPlan, plan
from serverless_bench.features.cost.part import PART as BILL
from serverless_bench.features.cost.prices import Prices
from serverless_bench.features.doctor.base import Patient
from serverless_bench.features.doctor.findings import Finding, Level
from serverless_bench.job.spec import JobSpec
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, percentiles

LIMIT: Final = 0.01
"""Dollars that all functions together stay below, even if each runs until its deadline."""
NUMBERS: Final = (2, 20)
SETTINGS: Final[Mapping[str, Any]] = {
    "workload": "write",
    "executor": "lambda",
    "number": NUMBERS[-1],
    "deadline": 6.0,
    "start_timeout": 30.0,
    "mb": 8,
}
_LARGE: Final = 1000
"""Functions of the run that the page ends with, each of which writes an object of 1 GiB."""
_BURST: Final = (
    f"{AWS_LAMBDA.launch.burst:,} environments of a function at once, then"
    f" {AWS_LAMBDA.launch.per_s:g} a second"
)
_WIDTH: Final = 80
_INDENT: Final = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRuns:
    """Runs with a few functions.

    Parameters
    ----------
    job
        Complete job of the largest run.
    prices
        Prices of its location.
    patient
        The account, with its functions.
    """

    job: JobSpec
    prices: Prices
    patient: Patient

    @property
    def jobs(self) -> list[JobSpec]:
        """A job for each run; the functions are probed before the first run only."""
        return [
            replace(self.job, number=number, concurrency=number).with_options(
                probe=number == NUMBERS[0]
            )
            for number in NUMBERS
        ]

    @property
    def at_most(self) -> float:
        """Highest possible cost of all runs.

        Raises
        ------
        CostError
            If it is not below the limit.
        """
        unlimited = CostLimit(limit=math.inf, prices=self.prices)
        most = sum(Budget(job, unlimited).at_most for job in self.jobs)
        if most >= LIMIT:
            raise CostError(
                f"{sum(NUMBERS)} functions could cost {self.prices.money(most)}, but this command"
                f" has to stay below {self.prices.money(LIMIT)}; nothing was started",
                hint="`memory` chooses smaller functions; sbench write has `max_cost`",
            )
        return most

    def run(self, root: Path, listener: Listener, *, keep: bool) -> list[Run]:
        """Run the jobs and delete their objects, unless they are kept; return the runs."""
        series = JobSeries(root=root, keep=keep, listener=listener)
        cost, spending = CostLimit(limit=LIMIT, prices=self.prices), Spending()
        tasks = [Task(job=job, cost=cost, spending=spending, progress="auto") for job in self.jobs]
        with series.keep_store(needed=False):
            return [series.run(task, str(task.job.number), accept=(INCOMPLETE,)) for task in tasks]

    def measured(self, run: Run) -> dict[str, Any]:
        """Return the figures of a run, in the units of its report."""
        summary = summarize(run, prices=self.prices)
        bill = BILL.results_in(summary)
        functions = aligned(run, worker_offsets(run)).functions
        began = functions["start_ns"] != ABSENT
        started_s = functions["start_ns"][began] / NS_PER_S
        spread_s = float(np.ptp(started_s)) if began.any() else 0.0
        round_trips_ns = (end_ns - begin_ns for begin_ns, end_ns, _ in run.probes)
        return {
            "functions": run.job.number,
            "ok": summary.ok,
            "exit_code": summary.exit_code(),
            "errors": summary.errors,
            "store": summary.store,
            "cold_starts": summary.cold_starts,
            "start_s": percentiles(started_s - functions["submitted_ns"][began] / NS_PER_S),
            "launches_per_s": (len(started_s) - 1) / spread_s if spread_s else None,
            "per_function_bytes_per_s": summary.per_function_bytes_per_s,
            "throughput_bytes_per_s": summary.throughput_bytes_per_s,
            "lambda_round_trip_s": _limits(run).round_trip_s,
            "store_round_trip_s": min(round_trips_ns, default=0) / NS_PER_S,
            "total": None if bill is None else bill.total,
        }

    def large(self, run: Run) -> JobPlan:
        """Return the plan of a run of 1,000 functions with the limits of the account."""
        setup, limits = self.patient.setups[0], _limits(run)
        return plan(
            replace(self.job, number=_LARGE, concurrency=_LARGE, size=GIB, deadline=900.0),
            memory=setup.memory_mib,
            arch=setup.architecture,
            quota=limits.effective,
            network_quota=self.patient.network_mbps,
            round_trip_s=limits.round_trip_s,
            in_vpc=setup.in_vpc,
            prices=self.prices,
        )


def _limits(run: Run) -> ConcurrencyLimits:
    """Return the limits of a large run of the same functions."""
    saved = {**(run.limits or {}), "asked": _LARGE}
    return ConcurrencyLimits(**{name: saved[name] for name in ConcurrencyLimits.__slots__})


def page(
    findings: Iterable[Finding], runs: Sequence[Mapping[str, Any]], large: JobPlan
) -> Iterator[str]:
    """Yield the lines of the final page, 80 columns wide."""
    allowed, problems = dict[str, list[str]](), list[str]()
    for finding in findings:
        if finding.level is Level.OK:
            allowed.setdefault(finding.what, []).append(finding.text)
        else:
            problems.append(f"{finding.what}: {finding.text} -> {finding.hint}")
    allowed["burst"] = [_BURST]
    yield from _section("The account", [_named(what, texts) for what, texts in allowed.items()])
    columns = [_figures(run, large.prices) for run in runs]
    rows = [
        (title, "".join(f"{column[title]:<28}" for column in columns).rstrip())
        for title in columns[0]
    ]
    yield from _section("Measured", [*rows, ("store", runs[0]["store"])])
    failures = [f"{count} x {error}" for run in runs for error, count in run["errors"].items()]
    problems = [*failures, *large.warnings, *problems] or ["none are foreseen"]
    rows = [*large.rows()]
    if large.expected is not None and large.forecast is not None:
        whole = format_rate(large.expected.bytes / large.forecast.run_s.p50)
        most = format_rate(large.job.concurrency * sustained_bytes_per_s(large.conditions))
        rows.append(("throughput", f"{whole} with launch and slow functions, {most} sustained"))
    rows += zip_longest(["problems"], problems, fillvalue="")
    yield from _section(f"A run of {_LARGE:,} functions that write 1 GiB each", rows)


def _named(what: str, texts: Iterable[str]) -> tuple[str, str]:
    """Return the kind of a resource, and its name before the texts."""
    kind, _, name = what.partition(" ")
    return kind, f"{name}: " * bool(name) + "; ".join(texts)


def _figures(run: Mapping[str, Any], prices: Prices) -> Mapping[str, str]:
    """Return the figures of a run by the title of their row."""
    starts, rates = run["start_s"] or {}, run["per_function_bytes_per_s"] or {}
    per_s, total = run["launches_per_s"], run["total"]
    return {
        "functions": f"{run['functions']}, {run['ok']} ok, {run['cold_starts']} cold",
        "began after": f"{format_seconds(starts.get('p50'))}, the last"
        f" {format_seconds(starts.get('p99'))}",
        "launched": "-" if per_s is None else format_per_s(per_s),
        "each wrote": format_rate(rates.get("p50")),
        "all wrote": format_rate(run["throughput_bytes_per_s"]),
        "cost": "-" if total is None else prices.money(total),
        "to Lambda": f"{format_seconds(run['lambda_round_trip_s'])} and back",
        "to the store": f"{format_seconds(run['store_round_trip_s'])} and back",
    }


def _section(heading: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a heading, and rows with their text wrapped beside the title."""
    yield from ("", heading)
    for title, text in rows:
        lines = wrap(text, _WIDTH - _INDENT, break_on_hyphens=False)
        for name, line in zip_longest([title], lines, fillvalue=""):
            yield f"{name:<{_INDENT}}{line}".rstrip()
