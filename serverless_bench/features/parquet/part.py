"""The part of a report about scans of files."""

from collections.abc import Iterable

from serverless_bench.base.units import format_rate, format_seconds, format_size
from serverless_bench.features.parquet.figures import Scans, scans
from serverless_bench.metrics.part import Part, Reduced, Rows, Section
from serverless_bench.metrics.summary import Summary


class _ScansPart(Part[Scans]):
    name = "scans"
    after = "stopped"
    displaces = False

    def compute(self, reduced: Reduced) -> Scans | None:
        """Return the results of scans."""
        return scans(reduced.run, reduced.good, elapsed_s=reduced.elapsed_s)

    def brief(self, figures: Scans, summary: Summary) -> Rows:
        """Yield the rate of needed bytes, and what was read for it."""
        needed = figures.needed_bytes
        useful = needed and (
            f"{format_rate(figures.needed_bytes_per_s)} useful;"
            f" read amplification {figures.read_bytes / needed:.2f}; "
        )
        yield "scans", f"{useful or ''}{figures.requests_per_file:.2f} requests per file"

    def tables(self, figures: Scans, summary: Summary) -> Iterable[Section]:
        """Yield a table with one row."""
        yield Section(
            title="scans",
            header=("files", "footer p50", "requests", "read", "needed", "needed per s"),
            rows=(
                (
                    f"{figures.files:,}",
                    format_seconds(None if figures.footer_s is None else figures.footer_s["p50"]),
                    f"{figures.requests_per_file:.2f} each",
                    format_size(figures.read_bytes),
                    "-" if figures.needed_bytes is None else format_size(figures.needed_bytes),
                    format_rate(figures.needed_bytes_per_s),
                ),
            ),
            names=0,
        )


PART = _ScansPart()
