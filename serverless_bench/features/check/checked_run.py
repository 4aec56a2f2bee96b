"""Check that a saved run is consistent, and compare it with the requests that the store saw."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.base.escaping import for_terminal
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import format_count, format_seconds
from serverless_bench.features.check.audited import Audit, Billed
from serverless_bench.features.check.variability import STRAGGLER, Variability, variability
from serverless_bench.metrics.display import Printed
from serverless_bench.metrics.invariants import INVARIANTS
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.report.base import completion
from serverless_bench.rundir.digests import file_problems, is_intact
from serverless_bench.rundir.run import AnyRun, Run, as_run

Line = tuple[str, str]
"""A line of text and a style: ``bad``, ``warning``, or empty."""


class CheckedRun(Printed, Struct, frozen=True, kw_only=True):
    """Result of ``check``; ``print`` shows it in the format of ``sbench check``.

    Parameters
    ----------
    summary
        Summary of the run; ``withheld`` lists impossible results.
    checks
        Number of self-checks.
    stability
        Warnings about causes of poor repeatability, and the slowest functions.
    contradictions
        Differences between the run's files and the notes of the driver or the job.
    audit
        Differences from the requests that the store saw; None without a request log.

    Examples
    --------
    >>> found = sbench.check(read)
    >>> str(found).splitlines()[0]
    '11 self-checks passed'
    """

    summary: Summary
    checks: int
    stability: Variability
    contradictions: tuple[str, ...] = ()
    audit: Audit | None = None

    @property
    def passed(self) -> bool:
        """Whether the results are possible and match the requests that the store saw."""
        differences = () if self.audit is None else self.audit.differences
        wrong = self.summary.withheld or self.contradictions or differences
        return not wrong and not self.violated_keys

    @property
    def violated_keys(self) -> int:
        """Number of shared keys with an impossible history."""
        return self.summary.violated_keys

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench check``."""
        data = {
            "checks": self.checks,
            "simulated": self.summary.simulated,
            "withheld": self.summary.withheld,
            "contradictions": self.contradictions,
            "violated_keys": self.violated_keys,
            **to_builtins(self.stability),
        }
        return data if self.audit is None else {**data, "request_log": to_builtins(self.audit)}

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the report."""
        if self.summary.simulated is not None:
            yield (
                f"simulated (model {self.summary.simulated}): no requests were sent",
                "warning",
            )
        yield from _self_checks(self.summary, self.checks)
        yield from ((text, "bad") for text in self.contradictions)
        if self.violated_keys:
            keys = format_count(self.violated_keys, "shared key")
            yield f"{keys} with an impossible history: see sbench report", "bad"
        yield from _variability(self.summary, self.stability)
        if self.audit is not None:
            yield from _audit(self.audit)

    def __str__(self) -> str:
        return "\n".join(for_terminal(text) for text, _ in self.lines())


def check(
    run: AnyRun, *, request_log: str | Path | None = None, cleaned: bool = False
) -> CheckedRun:
    """Check that a run's results are possible, and list causes of poor repeatability.

    Parameters
    ----------
    run
        A run, its name or its directory.
    request_log
        File of ``sbench serve --request-log``; differences from the run are listed.
    cleaned
        With a request log: whether all objects of the run must have been deleted.

    Returns
    -------
    CheckedRun
        The results of all checks.

    Raises
    ------
    ArchiveError
        If the directory contains no run.
    UsageError
        If the request log cannot be read, or ``cleaned`` is given without a request log.

    Examples
    --------
    >>> found = sbench.check(written)
    >>> found.passed, found.summary.withheld
    (True, ())
    """
    if cleaned and request_log is None:
        raise UsageError(
            "cleaned needs a request log", hint="name the file of sbench serve --request-log"
        )
    run = as_run(run)
    summary = summarize(run)
    return CheckedRun(
        summary=summary,
        checks=len(INVARIANTS),
        stability=variability(run, summary),
        contradictions=_contradictions(run),
        audit=None if request_log is None else audited(run, Path(request_log), cleaned=cleaned),
    )


def _contradictions(run: Run) -> tuple[str, ...]:
    """Return differences between a run's files and the driver's notes, or else the job."""
    if run.simulated is not None or is_intact(run.stages[0]):
        return file_problems(run)
    # These import executors and workloads, which most checks do not need.
    from serverless_bench.driver.origin import IMPORTED, is_ours
    from serverless_bench.driver.run_keys import run_keys

    derived = run.job.executor != IMPORTED and not is_ours(run.path)
    try:
        return run_keys(run).problems if derived else file_problems(run)
    except PluginError:
        # Only the plugin of its job knows the keys; its files can be compared without it.
        return file_problems(run)


def audited(run: Run, request_log: Path, *, cleaned: bool = False) -> Audit:
    """Compare a run, and the bill if there is one, with a request log."""
    cost = TOOLS.load("bill")(run) if "bill" in TOOLS else None
    billed = Billed(requests=cost.requests, exact=cost.requests_exact) if cost else None
    audit: Audit = TOOLS.load("audit")(run.path, request_log, billed=billed, cleaned=cleaned)
    return audit


def _self_checks(summary: Summary, checks: int) -> Iterator[Line]:
    if not summary.withheld:
        yield f"{checks} self-checks passed", ""
        return
    wrong = format_count(len(summary.withheld), "contradiction")
    yield f"{checks} self-checks made, {wrong} found:", ""
    yield from ((f"  {why}", "bad") for why in summary.withheld)


def _variability(summary: Summary, found: Variability) -> Iterator[Line]:
    yield f"{format_count(len(found.warnings), 'warning')}{':' if found.warnings else ''}", ""
    for warning in found.warnings:
        yield f"  {warning}", "warning"
    yield f"completion: {completion(summary)}", ""
    if found.max_over_p50 is not None and found.tail_tax is not None:
        stragglers = (
            format_count(len(found.stragglers), "straggler") if found.stragglers else "no straggler"
        )
        text = f"{stragglers} (above {STRAGGLER}x the median); slowest function:"
        text += f" {found.max_over_p50:.2f}x the median; the last 5% took"
        yield f"{text} {found.tail_tax:.0%} of the run", ""
    for straggler in found.stragglers:
        mark = ", an outlier" if straggler.index in found.outliers else ""
        took = format_seconds(straggler.took_s)
        text = f"  function {straggler.index}: {took} on {straggler.worker_id}{mark};"
        yield f"{text} requests {', '.join(straggler.request_ids) or '-'}", ""


def _audit(seen: Audit) -> Iterator[Line]:
    counts = ", ".join(f"{count} {name}" for name, count in seen.requests.items() if count)
    yield (
        f"request log: {counts or 'no'} requests; {format_count(seen.matched, 'attempt')} matched",
        "",
    )
    if seen.by_key_and_time:
        yield f"  {seen.by_key_and_time} name no attempt: matched by key and time", ""
    if seen.not_compared:
        yield f"  {seen.not_compared} by functions without a record: not compared", ""
    if seen.left:
        key_count = format_count(len(seen.left), "key")
        yield f"  still there of the run: objects or open uploads of {key_count}", ""
    yield format_count(len(seen.differences), "difference"), ""
    for difference in seen.differences:
        where = "" if difference.key is None else f" {difference.key}:"
        yield f"  {difference.about}:{where} {difference.text}", "bad"
