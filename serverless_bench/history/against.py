"""New runs held against recorded ones: which may be, and what is found."""

from collections.abc import Iterator, Sequence

from serverless_bench.errors import UsageError
from serverless_bench.history.judging import judge, of_recorded, of_the_same_work, sessions
from serverless_bench.history.recorded import RecordedRun
from serverless_bench.history.showing import HistoryCheck
from serverless_bench.units import format_count


def against_recorded(
    known: Sequence[RecordedRun],
    new: Sequence[RecordedRun],
    *,
    key: str,
    figures: Sequence[str],
    tolerance: float,
    loss: float,
) -> HistoryCheck:
    """Check new runs, as one session, against those that are recorded.

    Parameters
    ----------
    known
        The recorded runs, by age; those that are new ones do not count.
    new
        One run or several of one configuration.
    key
        Of the recorded runs.
    figures, tolerance, loss
        As `judge` has them.

    Raises
    ------
    UsageError
        If the new runs are of several configurations, or lack a figure.
    """
    _check_new(new, figures)
    ids = {run.run_id for run in new}
    others = [run for run in known if run.run_id not in ids]
    old = of_the_same_work(others, new)
    return HistoryCheck(
        key=key,
        in_turns=False,
        old=f"{format_count(len(old), 'recorded run')} of"
        f" {format_count(len(sessions(old)), 'session')}",
        new=format_count(len(new), "new run"),
        tolerance=tolerance,
        loss=loss,
        findings=tuple(judge(of_recorded(figures, old, new), tolerance=tolerance, loss=loss)),
        notes=(*_left_out(len(others) - len(old)), *_new_versions(old, new)),
    )


def _check_new(new: Sequence[RecordedRun], figures: Sequence[str]) -> None:
    """Refuse runs that are not of one configuration, or lack a figure.

    Raises
    ------
    UsageError
        If they are not, or do.
    """
    keys = sorted({run.key for run in new})
    hint = "check those of one at a time"
    if len(keys) > 1:
        raise UsageError(f"the runs are of several configurations: {', '.join(keys)}", hint=hint)
    if len(of_the_same_work(new, new)) < len(new):
        raise UsageError("the runs moved different amounts of bytes", hint=hint)
    for run in new:
        for name in figures:
            if name not in run.figures:
                known = ", ".join(sorted(run.figures))
                raise UsageError(
                    f"the run {run.run_id} has no {name}", hint=f"choose another --metric: {known}"
                )


def _left_out(number: int) -> Iterator[str]:
    if number:
        yield (
            f"{format_count(number, 'recorded run')} left out: of other work, or from before"
            " a restart"
        )


def _new_versions(old: Sequence[RecordedRun], new: Sequence[RecordedRun]) -> Iterator[str]:
    """Yield which versions the new runs have and no old one had."""
    for name in dict.fromkeys(name for run in new for name in run.versions):
        before = {run.versions.get(name) for run in old}
        now = sorted({run.versions[name] for run in new if name in run.versions} - before)
        if now and old:
            yield f"{name} is new: {', '.join(now)}"
