"""The part of a report about conditional writes, and about histories that cannot be."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from serverless_bench.base.units import format_count, format_number, format_seconds
from serverless_bench.features.conditional.figures import Contention, contention
from serverless_bench.features.conditional.linearizability import Fault, Violation
from serverless_bench.metrics.latency import is_largest
from serverless_bench.metrics.part import Part, Reduced, Rows, Section

if TYPE_CHECKING:
    from serverless_bench.metrics.summary import Summary

_FAULTS: Final[Mapping[Fault, str]] = {
    Fault.FORKED: "version {0} was replaced more than once, by {rest}: an update is lost",
    Fault.PHANTOM: "version {0} was read, and no acknowledged write made it",
    Fault.STALE: "version {0} was seen when version {1} had been there before",
    Fault.UNCLAIMED: "it was rejected as taken, but no function holds it",
}


class _ContentionPart(Part[Contention]):
    name = "contention"
    after = "not_shown"

    def compute(self, reduced: Reduced) -> Contention | None:
        """Return the results of contention on shared keys."""
        return contention(
            *(reduced.run, reduced.measured, reduced.good, reduced.offsets),
            elapsed_s=reduced.elapsed_s,
        )

    def headline(self, figures: Contention) -> Iterable[str]:
        """Yield how the store was inconsistent, or that it was not."""
        if not figures.commits:
            return
        if not figures.violated_keys:
            yield f"no update lost: {format_count(figures.commits, 'commit')}"
        elif figures.lost_updates:
            yield f"at least {figures.lost_updates:,} acknowledged updates are LOST"
        else:
            yield f"{format_count(figures.violated_keys, 'key')} with an INCONSISTENT history"

    def brief(self, figures: Contention, summary: "Summary") -> Rows:
        """Yield commits, and writes that others had made obsolete."""
        commits = format_count(figures.commits, "commit")
        refused = format_count(figures.refused, "write")
        yield "contention", f"{commits}, {refused} refused because the version was replaced"

    def tables(self, figures: Contention, summary: "Summary") -> Iterable[Section]:
        """Yield a row; violations are among the problems."""
        times, retries = figures.commit_s, figures.retries_per_commit
        yield Section(
            title="contention",
            header=(
                *("pattern", "contenders", "keys", "commits", "per s", "p50", "p99"),
                *("retries each", "412", "409", "unknown", "taken", "fairness"),
            ),
            rows=(
                (
                    figures.pattern,
                    f"{figures.contenders:,}",
                    f"{figures.keys:,}",
                    f"{figures.commits:,}",
                    "-" if figures.commits_per_s is None else format_number(figures.commits_per_s),
                    format_seconds(None if times is None else times["p50"]),
                    "-"
                    if times is None or is_largest("p99", times["n"])
                    else format_seconds(times["p99"]),
                    "-" if retries is None else f"{retries:.2f}",
                    str(figures.refused),
                    str(figures.conflicts),
                    str(figures.unknown_writes),
                    str(figures.taken),
                    "-" if figures.fairness is None else f"{figures.fairness:.3f}",
                ),
            ),
            names=1,
        )

    def wrong(self, figures: Contention) -> Iterable[str]:
        """Return a line about each inconsistent history."""
        return map(_line, figures.violations)

    def violated_keys(self, figures: Contention) -> int:
        """Return the number of keys with an inconsistent history."""
        return figures.violated_keys


def _line(violation: Violation) -> str:
    versions = [version or "none" for version in violation.versions]
    text = _FAULTS[violation.fault].format(*versions, rest=" and ".join(versions[1:]))
    functions = ", ".join(map(str, dict.fromkeys(violation.functions)))
    return f"{violation.key}: {text} (functions {functions or 'without a record'})"


PART = _ContentionPart()
