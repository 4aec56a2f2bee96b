"""The part of a report about a shuffle.

It has both phases and their plan, lost partitions, and the price of stragglers. Pure functions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.errors import Throttled
from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.cost.part import PART as BILL
from serverless_bench.features.cost.part import given
from serverless_bench.features.shuffle.workload import mapper_of
from serverless_bench.job.abilities import Phase, tally_of
from serverless_bench.job.price_classes import FREE, FREE_STATUS, GET_CLASS
from serverless_bench.metrics.part import Part, Reduced, Rows, Section
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    EARLIEST,
    LATEST,
    READS,
    Floats,
    Mask,
    is_one_of,
    is_text,
    largest_by,
)

if TYPE_CHECKING:
    from serverless_bench.features.cost.bill import Bill
    from serverless_bench.features.cost.expected import ExpectedPhase
    from serverless_bench.features.cost.prices import Prices
    from serverless_bench.metrics.summary import Summary

_MOST_NAMED: Final = 1000
"""Most lost partitions that a report names."""


class LostPartition(Struct, frozen=True, kw_only=True):
    """A partition that its reducer did not read; figures.toml defines each field."""

    mapper: int
    reducer: int
    error: str | None


class ShufflePhase(Struct, frozen=True, kw_only=True):
    """The mappers or the reducers; figures.toml defines each field."""

    phase: str
    requests: Mapping[str, int]
    planned_requests: int
    throttled: int
    bytes: int
    end_s: float | None
    planned_end_s: float
    straggler_s: float | None
    dollars: float | None


class Shuffling(Struct, frozen=True, kw_only=True):
    """Partitions from mappers to reducers; figures.toml defines each field."""

    phases: tuple[ShufflePhase, ...]
    partitions: int
    lost: int
    lost_partitions: tuple[LostPartition, ...]
    waited_s: float
    waited_for_stragglers_s: float | None
    stragglers_dollars: float | None


def shuffling(
    run: Run, measured: Mask, good: Mask, bill: "Bill | None", prices: "Prices | None"
) -> Shuffling | None:
    """Return the results of a job with two phases; None for another job.

    Parameters
    ----------
    run
        A saved run.
    measured, good
        Masks of the operations that count, and of those that are also successful.
    bill
        The bill of the run; None if it has none.
    prices
        Prices to use; None for those that come with sbench.
    """
    tally = tally_of(run.job.declared, run.job.load)
    if tally is None or not tally.phases:
        return None
    mappers, reducers = (phase.functions for phase in tally.phases)
    rows = _Rows(run, measured, good, _dollars_of(run, bill, prices))
    lost = rows.lost(mappers, reducers)
    is_mapper = run.functions["index"] < mappers
    masks = is_mapper, ~is_mapper
    ends = rows.ends(masks)
    return Shuffling(
        phases=tuple(rows.phases(tally.phases, masks, ends)),
        partitions=mappers * reducers,
        lost=len(lost),
        lost_partitions=tuple(
            LostPartition(mapper=mapper, reducer=reducer, error=error)
            for (mapper, reducer), error in islice(lost.items(), _MOST_NAMED)
        ),
        **rows.waits(ends[0]),
    )


def _dollars_of(
    run: Run, bill: "Bill | None", prices: "Prices | None"
) -> Callable[..., float] | None:
    """Return a function for the price of a usage; None for a run without a bill."""
    if bill is None:
        return None
    from serverless_bench.features.cost.places import placed
    from serverless_bench.features.cost.prices import (
        BilledUsage,
        needed_prices,
        price,
    )

    valid = needed_prices(run.job, prices)
    usual: dict[str, Any] = {"architecture": bill.architecture, **placed(run.job)}
    return lambda **usage: price(BilledUsage(**usual, **usage), valid).total


def _foreseen(run: Run) -> "Sequence[ExpectedPhase]":
    from serverless_bench.features.cost.expected import expected
    from serverless_bench.features.cost.forecast import VCPU_MIB, CostConditions

    setting = CostConditions(
        memory_mib=FunctionOptions.from_work(run.job).memory or VCPU_MIB, architecture="arm64"
    )
    foreseen = expected(run.job, setting)
    return () if foreseen is None else foreseen.phases


def _median(ends: Sequence[int]) -> int:
    return ends[(len(ends) - 1) // 2]


class _Rows(Struct, frozen=True):
    run: Run
    measured: Mask
    good: Mask
    dollars_of: Callable[..., float] | None

    def lost(self, mappers: int, reducers: int) -> dict[tuple[int, int], str | None]:
        """Return the errors of the partitions without a successful read."""
        run, operations = self.run, self.run.operations
        tried = np.flatnonzero(self.measured & is_one_of(operations["kind"], ("wait", *READS)))
        readers = run.functions["index"][operations["function"][tried]] - mappers
        names = ("key", "kind", "error")
        columns = readers.tolist(), *(operations[name][tried].tolist() for name in names)
        rows = list(zip(*columns, strict=True))
        waits = {reducer: error for reducer, _, kind, error in rows if kind == "wait"}
        lost: dict[tuple[int, int], str | None] = {
            (mapper, reducer): waits.get(reducer)
            for mapper in range(mappers)
            for reducer in range(reducers)
        }
        for reducer, key, _, error in (row for row in rows if row[2] != "wait"):
            partition = mapper_of(key), reducer
            if error is None:
                lost.pop(partition, None)
            elif partition in lost:
                lost[partition] = error
        return lost

    def ends(self, masks: Sequence[Mask]) -> list[list[int]]:
        """Return the sorted ends of the functions of each mask."""
        operations, rows = self.run.operations, np.flatnonzero(self.measured)
        function, end_ns = (operations[name][rows] for name in ("function", "end_ns"))
        ends = largest_by(function, end_ns, len(self.run.functions["index"]))
        return [sorted(ends[mask & (ends != EARLIEST)].tolist()) for mask in masks]

    def waits(self, ends: Sequence[int]) -> dict[str, Any]:
        """Return the waiting times, and the price of that for the slower of these mappers."""
        operations = self.run.operations
        waits = self.measured & is_text(operations["kind"], "wait")
        start, end = (operations[name][waits] for name in ("start_ns", "end_ns"))
        threads_ns = NS_PER_S * self.run.job.load.threads
        late_s = dollars = None
        if ends:
            # The poll that notices the last mapper is no wait for a straggler.
            late_ns = np.maximum(0, np.minimum(end, ends[-1]) - np.maximum(start, _median(ends)))
            late_s = float(late_ns.sum()) / threads_ns
            if self.dollars_of is not None:
                gib = self._gib()[operations["function"][waits]]
                dollars = self.dollars_of(gb_s=float((late_ns * gib).sum()) / threads_ns)
        return {
            "waited_s": float((end - start).sum()) / threads_ns,
            "waited_for_stragglers_s": late_s,
            "stragglers_dollars": dollars,
        }

    def phases(
        self, planned: "Sequence[Phase]", masks: Sequence[Mask], all_ends: Sequence[Sequence[int]]
    ) -> Iterator[ShufflePhase]:
        """Yield the figures of each phase, with the mask and the ends of its functions."""
        operations, attempts = self.run.operations, self.run.attempts
        origin_ns = int(operations["start_ns"][self.measured].min(initial=LATEST))
        row = self.run.operation_rows(attempts)
        together = zip(planned, _foreseen(self.run), masks, all_ends, strict=True)
        for phase, plan, functions, ends in together:
            mine = functions[operations["function"]]
            made = mine[row]
            yield ShufflePhase(
                phase=phase.name,
                requests=dict(Counter(sorted(attempts["request"][made].tolist()))),
                planned_requests=plan.requests,
                throttled=int((made & is_text(attempts["error"], Throttled.code)).sum()),
                bytes=int(operations["bytes"][mine & self.good].sum()),
                end_s=(ends[-1] - origin_ns) / NS_PER_S if ends else None,
                planned_end_s=plan.end_s,
                straggler_s=(ends[-1] - _median(ends)) / NS_PER_S if ends else None,
                dollars=self._dollars(functions, made),
            )

    def _gib(self) -> Floats:
        return np.maximum(0, self.run.functions["memory_mib"]) / 1024

    def _dollars(self, functions: Mask, made: Mask) -> float | None:
        """Return the price of functions and their requests, without claims and records."""
        if self.dollars_of is None:
            return None
        from serverless_bench.features.cost.bill import billed_ns

        table, attempts = self.run.functions, self.run.attempts
        there = functions & (table["start_ns"] != ABSENT) & (table["memory_mib"] != ABSENT)
        billed = made & (attempts["status"] < FREE_STATUS) & ~is_one_of(attempts["request"], FREE)
        gets = int((billed & is_one_of(attempts["request"], GET_CLASS)).sum())
        return self.dollars_of(
            gb_s=float((billed_ns(self.run, there) / NS_PER_S * self._gib()[there]).sum()),
            invocations=int(there.sum()),
            puts=int(billed.sum()) - gets,
            gets=gets,
        )


class _ShufflePart(Part[Shuffling]):
    name = "shuffle"
    after = "stopped"
    displaces = False

    def compute(self, reduced: Reduced) -> Shuffling | None:
        """Return the results of both phases."""
        bill, prices = reduced.results_of(BILL), given(reduced)
        return shuffling(reduced.run, reduced.measured, reduced.good, bill, prices)

    def brief(self, figures: Shuffling, summary: "Summary") -> Rows:
        """Yield a row for both phases, and one for waiting."""
        bill = BILL.results_in(summary)
        phases = (
            f"{phase.phase} until {format_seconds(phase.end_s)}"
            f" (plan {format_seconds(phase.planned_end_s)}),"
            f" {sum(phase.requests.values()):,} requests (plan {phase.planned_requests:,})"
            for phase in figures.phases
        )
        yield "phases", "; ".join((*phases, "each byte counts twice, as written and as read"))
        late_s, dollars = figures.waited_for_stragglers_s, figures.stragglers_dollars
        cost = "" if bill is None or dollars is None else f", {bill.money(dollars)}"
        text = (
            f"{format_seconds(figures.waited_s)}, of which {format_seconds(late_s)} on stragglers"
        )
        yield "reducer wait", f"{text}{cost}"

    def tables(self, figures: Shuffling, summary: "Summary") -> Iterable[Section]:
        """Yield a table with a row for each phase."""
        bill = BILL.results_in(summary)
        header = ("phase", "ended", "planned", "stragglers", "requests", "planned", "503s", "cost")
        yield Section(
            title="phases",
            header=header,
            rows=tuple(
                (
                    phase.phase,
                    format_seconds(phase.end_s),
                    format_seconds(phase.planned_end_s),
                    format_seconds(phase.straggler_s),
                    ", ".join(f"{count:,} {name}" for name, count in phase.requests.items()),
                    f"{phase.planned_requests:,}",
                    f"{phase.throttled:,}",
                    "-" if bill is None or phase.dollars is None else bill.money(phase.dollars),
                )
                for phase in figures.phases
            ),
            names=1,
        )

    def missing(self, figures: Shuffling, most: int | None) -> Iterable[str]:
        """Yield a line with the names of lost partitions, if there are any."""
        if not figures.lost:
            return
        names = [
            f"{part.mapper}-{part.reducer} ({part.error or 'not read'})"
            for part in figures.lost_partitions[:most]
        ]
        if more := figures.lost - len(names):
            names.append(f"{more:,} more")
        count = format_count(figures.lost, "partition")
        yield f"lost {count} of {figures.partitions:,}, as mapper-reducer: {', '.join(names)}"


PART = _ShufflePart()
