"""The part of a report about what an array library used."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from serverless_bench.base.units import format_size
from serverless_bench.metrics.part import Part, Reduced, Section

if TYPE_CHECKING:
    # Only imported for runs with libraries.
    from serverless_bench.features.array.figures import LibraryUsage
    from serverless_bench.metrics.summary import Summary


class _LibrariesPart(Part["tuple[LibraryUsage, ...]"]):
    name = "libraries"
    after = "latencies"

    def compute(self, reduced: Reduced) -> "tuple[LibraryUsage, ...]":
        """Return the usage of each kind of monitored operation; none without any."""
        if not len(reduced.run.usages.get("operation", ())):
            return ()
        from serverless_bench.features.array.figures import library_usage

        return library_usage(reduced.run, reduced.good)

    def replaced(
        self, figures: "tuple[LibraryUsage, ...]", summary: "Summary"
    ) -> Mapping[str, str]:
        """Say that requests are not visible, and leave out the time of generating bytes."""
        if not figures:
            return {}
        from serverless_bench.report.base import client

        return {
            "attempts": "made by the library, not visible",
            "client": client(summary, has_cpu_time=False),
        }

    def tables(self, figures: "tuple[LibraryUsage, ...]", summary: "Summary") -> Iterable[Section]:
        """Yield a table with a row for each kind of operation."""
        if not figures:
            return
        yield Section(
            title="resource usage of the library",
            header=(
                *("operation", "watched", "bytes", "memory p50", "memory max", "peak resident"),
                *("threads", "CPU-s/GiB"),
            ),
            rows=tuple(
                (
                    use.kind,
                    str(use.count),
                    format_size(use.bytes),
                    *_ratios(use),
                    "-" if use.rss_peak_bytes is None else format_size(use.rss_peak_bytes),
                    "-" if use.threads_peak is None else str(use.threads_peak),
                    "-" if use.cpu_s_per_gib is None else f"{use.cpu_s_per_gib:.2f}",
                )
                for use in figures
            ),
            names=1,
        )


def _ratios(use: "LibraryUsage") -> tuple[str, str]:
    ratio = use.memory_ratio
    return ("-", "-") if ratio is None else (f"{ratio['p50']:.2f} x", f"{ratio['max']:.2f} x")


PART = _LibrariesPart()
