"""Parts of a report: the results of one feature, and how reports show them.

A part belongs to one workload (``Workload.part``), or is asked of every run because a policy or
a place adds it (``PARTS``). The rest of the package knows no part by name. A file ``figures.toml``
beside a part defines each result.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from msgspec import Struct

from serverless_bench.base.plugins import Registry
from serverless_bench.job.workload import workload_of
from serverless_bench.metrics.clock_offsets import Offsets
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Mask

if TYPE_CHECKING:
    from serverless_bench.metrics.summary import Summary

F = TypeVar("F")
Rows = Iterable[tuple[str, str]]
"""Names and values of rows of a table."""


class Position(Enum):
    """Positions of rows in the main table."""

    RESULT = "before the warm-up"
    PACE = "after the warm-up"
    LIMIT = "before the store"
    WORKERS = "after the workers"
    LAST = "at the end"


class Section(Struct, frozen=True, kw_only=True):
    """A table ready for output."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int
    """Number of columns with names; the other columns are numbers."""

    @property
    def align(self) -> str:
        """Alignment for ``text_table``: names to the left, numbers to the right."""
        return "l" * self.names + "r" * (len(self.header) - self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """A run with the results that parts are computed from."""

    run: Run
    """With the workers' timestamps on the driver's clock."""
    measured: Mask
    """Operations that count; ``good`` are those of them that succeeded."""
    good: Mask
    offsets: Offsets
    """Evidence on the clocks."""
    elapsed_s: float | None
    """Duration of the run; None omits rates."""
    prices: object
    """Prices to use; None for those that come with sbench."""
    parts: dict[str, Any] = field(default_factory=dict)
    """Results by part, as far as they are computed."""

    def results_of(self, part: "Part[F]") -> F | None:
        """Return the results of a part, which are computed once."""
        if part.name not in self.parts:
            is_asked = not part.option or part.option in self.run.job.options
            self.parts[part.name] = part.compute(self) if is_asked else None
        figures: F | None = self.parts[part.name]
        return figures


class Part(Generic[F]):
    """A part of a report."""

    name: str
    """Name in the JSON report."""
    after: str
    """Field of the JSON report that precedes it."""
    option = ""
    """Option of a job without which a run has no results of it; empty if it needs none."""
    in_all = False
    """Whether it is null in the JSON report of a run without results, and not left out."""
    position = Position.RESULT
    """Position of the rows."""
    displaces = True
    """Whether the short report shows one kind of operations less beside it."""
    title = ""
    """Title of a section on a page; without one, rows are in the table of the report."""
    nothing = ""
    """Sentence of that section if it has no rows."""

    @property
    def folder(self) -> str:
        """Package with the definitions."""
        return type(self).__module__.rpartition(".")[0]

    def compute(self, reduced: Reduced) -> F | None:
        """Return the results; None if the run has none."""
        raise NotImplementedError

    def results_in(self, summary: "Summary") -> F | None:
        """Return the results in a summary; None without any."""
        figures: F | None = summary.parts.get(self.name)
        return figures

    def headline(self, figures: F) -> Iterable[str]:
        """Return phrases for the first line of every report."""
        return ()

    def brief(self, figures: F, summary: "Summary") -> Rows:
        """Return the rows of the short report."""
        return ()

    def rows(self, figures: F, summary: "Summary") -> Rows:
        """Return the rows of the full report."""
        return ()

    def absent(self, summary: "Summary") -> Rows:
        """Return the rows of the full report of a run without results."""
        return ()

    def replaced(self, figures: F, summary: "Summary") -> Mapping[str, str]:
        """Return the values of rows of the full report that differ beside this part, by name."""
        return {}

    def tables(self, figures: F, summary: "Summary") -> Iterable[Section]:
        """Return the tables of the full report."""
        return ()

    def missing(self, figures: F, most: int | None) -> Iterable[str]:
        """Return a line for each kind of missing work, with up to ``most`` names, or with all."""
        return ()

    def wrong(self, figures: F) -> Iterable[str]:
        """Return a line for each thing that the store must not do, but did."""
        return ()

    def violated_keys(self, figures: F) -> int:
        """Return the number of keys with which the store did so."""
        return 0


PARTS: Final = Registry[Part[Any]]("parts", {})
"""The parts that every run is asked for."""


@cache
def parts_of(workload: str) -> tuple[Part[Any], ...]:
    """Return the parts that runs of a workload may have: those of all runs, then the workload's."""
    own = workload_of(workload).part
    return (*map(PARTS.load, PARTS), *([resolve_name(own)] if own else ()))


def present(summary: "Summary") -> Iterator[tuple[Part[Any], Any]]:
    """Yield the parts of a summary that have results, with these."""
    parts = ((part, part.results_in(summary)) for part in parts_of(summary.workload))
    yield from ((part, figures) for part, figures in parts if figures is not None)
