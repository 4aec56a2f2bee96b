"""The part of a report about listings: their rate, their pages, and keys that are wrong."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.units import NS_PER_S, format_count, format_per_s, format_seconds
from serverless_bench.features.listing.load import ListLoad
from serverless_bench.metrics.part import Part, Reduced, Rows
from serverless_bench.metrics.summary import Summary
from serverless_bench.rundir.tables import Percentiles, is_text, percentiles

MAX_REPORTED: Final = 50
"""Maximum number of problems in a report."""


class KeyProblem(Struct, frozen=True, kw_only=True):
    """A key of a listing that is wrong; figures.toml defines each field."""

    key: str
    problem: str


class Listings(Struct, frozen=True, kw_only=True):
    """Listings of prefixes; figures.toml defines each figure."""

    prefixes: int
    keys: int
    keys_per_s: float | None
    pages: int
    first_page_s: Percentiles | None
    page_s: Percentiles | None
    verified: bool
    wrong_keys: int
    problems: tuple[KeyProblem, ...]


class _ListingsPart(Part[Listings]):
    name = "listings"
    after = "stopped"
    displaces = False

    def compute(self, reduced: Reduced) -> Listings | None:
        """Return the results of the listings that succeeded, and all problems."""
        run, operations, attempts = reduced.run, reduced.run.operations, reduced.run.attempts
        listing = is_text(operations["kind"], "list_all")
        if not (reduced.measured & listing).any():
            return None
        row = run.operation_rows(attempts)
        done = reduced.good & listing
        answered = np.flatnonzero(done[row] & is_text(attempts["error"], None))
        page_s = (attempts["end_ns"] - attempts["start_ns"])[answered] / NS_PER_S
        of_page, first = np.unique(row[answered], return_index=True)
        first_ns = attempts["end_ns"][answered[first]] - operations["start_ns"][of_page]
        keys = int(operations["count"][done].sum())
        found = zip(run.accesses["key"], run.accesses["version"], strict=True)
        problems = dict.fromkeys(found if run.accesses else ())
        load, functions = ListLoad.narrow(run.job.load), run.functions
        is_whole = (
            is_text(functions["status"], "ok").all() and (functions["barrier_late"] <= 0).all()
        )
        if load.by == "sequence" and not load.tree and not is_whole:
            # A function that failed, or came late, had not written what others listed.
            problems = {each: None for each in problems if each[1] != "missing"}
        return Listings(
            prefixes=int(done.sum()),
            keys=keys,
            keys_per_s=keys / reduced.elapsed_s if reduced.elapsed_s else None,
            pages=len(answered),
            first_page_s=percentiles(first_ns / NS_PER_S),
            page_s=percentiles(page_s),
            verified=not run.job.reads_given,
            wrong_keys=len({key for key, _ in problems}),
            problems=tuple(
                KeyProblem(key=key, problem=problem) for key, problem in [*problems][:MAX_REPORTED]
            ),
        )

    def brief(self, figures: Listings, summary: Summary) -> Rows:
        """Yield the rate, the pages, and whether the keys were compared."""
        first = None if figures.first_page_s is None else figures.first_page_s["p50"]
        page = None if figures.page_s is None else figures.page_s["p50"]
        compared = "compared with those written" if figures.verified else "order alone compared"
        rate = figures.keys_per_s and f"{format_per_s(figures.keys_per_s)} in "
        yield "keys", f"{rate or ''}{format_count(figures.prefixes, 'listing')}; {compared}"
        times = f"p50 {format_seconds(page)}, of the first {format_seconds(first)}"
        yield "pages", f"{figures.pages:,} with {figures.keys:,} keys, {times}"

    rows = brief

    def wrong(self, figures: Listings) -> Iterable[str]:
        """Yield a line for each problem."""
        yield from (f"{each.key}: {each.problem}" for each in figures.problems)

    def violated_keys(self, figures: Listings) -> int:
        """Return the number of keys that are wrong."""
        return figures.wrong_keys


PART: Final = _ListingsPart()
