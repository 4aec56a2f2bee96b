"""The figures of a run with existing objects, and their row."""

from typing import Final

from msgspec import Struct

from serverless_bench.base.units import format_count
from serverless_bench.features.existing.options import ExistingOptions
from serverless_bench.metrics.part import Part, Reduced, Rows
from serverless_bench.metrics.summary import Summary


class ExistingObjects(Struct, frozen=True, kw_only=True):
    """Objects of the list of a run; figures.toml defines each field."""

    chosen_objects: int
    cold_objects: int
    unread_objects: int


class _ExistingPart(Part[ExistingObjects]):
    name = "existing"
    after = "stopped"
    option = "existing"
    displaces = False

    def compute(self, reduced: Reduced) -> ExistingObjects:
        """Return the numbers of objects that were chosen, and that were left out."""
        options = ExistingOptions.from_work(reduced.run.job)
        return ExistingObjects(
            chosen_objects=len(reduced.run.keys()),
            cold_objects=options.cold_objects,
            unread_objects=options.unread_objects,
        )

    def rows(self, figures: ExistingObjects, summary: Summary) -> Rows:
        """Yield a row with these numbers."""
        text = f"{format_count(figures.chosen_objects, 'object')}, read unverified"
        if figures.cold_objects or figures.unread_objects:
            text += (
                f"; left out: {figures.cold_objects:,} in cold storage,"
                f" {figures.unread_objects:,} empty or with odd keys"
            )
        yield "existing", text

    brief = rows


PART: Final = _ExistingPart()
