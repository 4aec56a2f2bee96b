"""Record runs in a history, and check new runs against it, or against old runs in turns."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import format_count
from serverless_bench.driver.task import Listener
from serverless_bench.features.ab.turns import OnRun, Side, Turns, run_interleaved
from serverless_bench.features.compare.run_comparison import Runs, load_runs
from serverless_bench.features.compare.runs import series_in
from serverless_bench.features.compare.samples import more_is_better, what_differs
from serverless_bench.features.compare.verdict import require_scipy
from serverless_bench.features.history.folder import History
from serverless_bench.features.history.judging import (
    DEFAULT_FIGURES,
    LOSS,
    TOLERANCE,
    by_block,
    judge,
    of_recorded,
    of_the_same_work,
    sessions,
)
from serverless_bench.features.history.recorded import RecordedRun, record, with_restart
from serverless_bench.features.history.showing import HistoryCheck
from serverless_bench.rundir.run import load_run

HISTORY: Final = ".sbench-history"
"""Default folder of recorded runs."""


def history_add(
    runs: Runs,
    history: str | Path = HISTORY,
    *,
    machine: str = "",
    label: str = "",
    restart: bool = False,
) -> dict[Path, bool]:
    """Record runs in a folder under version control, like ``sbench history add``.

    All runs are validated before the first is recorded: a run that lost functions, or fails its
    self-checks, is not valid.

    Parameters
    ----------
    runs
        A run, a directory that contains runs, or a list of those.
    history
        Folder of the history; created if it does not exist.
    machine
        Name of this machine, if another has the same system and number of CPUs.
    label
        Name of the tested version, such as a commit.
    restart
        Whether checks should ignore older runs.

    Returns
    -------
    dict
        For the file of each run, whether it is new.

    Raises
    ------
    UsageError
        If the results of a run are not valid for its configuration.
    ArchiveError
        If a directory contains no run, or the history is not writable.

    Examples
    --------
    >>> [*sbench.history_add([written, again], "history", label="v1").values()]
    [True, True]
    """
    recorded_runs, folder = _recorded(runs, machine=machine, label=label), History(Path(history))
    if restart:
        recorded_runs = with_restart(recorded_runs)
    return {folder.path / run.key / run.file_name: folder.add(run) for run in recorded_runs}


def history_check(
    runs: Runs,
    history: str | Path = HISTORY,
    *,
    against: str | None = None,
    metrics: Sequence[str] = DEFAULT_FIGURES,
    tolerance: float = TOLERANCE,
    power: float = LOSS,
    machine: str = "",
) -> HistoryCheck:
    """Judge whether new runs are as good as recorded runs, like ``sbench history check``.

    Parameters
    ----------
    runs
        Runs of the same configuration; see ``history_add``.
    history
        Folder with the recorded runs.
    against
        Key of the recorded runs, or a unique part of it; None selects the same configuration.
    metrics
        Metrics to check; see ``compare``.
    tolerance
        Smallest relevant loss: 0.05 for 5 %.
    power
        Loss for which to report the power.
    machine
        See ``history_add``.

    Returns
    -------
    HistoryCheck
        Passed, regressed or undecided; see "History" in the documentation,
        documents the guarantees.

    Raises
    ------
    UsageError
        If the runs differ in configuration, lack a metric, or cannot be recorded.
    ArchiveError
        If the history does not exist.

    Examples
    --------
    >>> sbench.history_check(again, "history").verdict.value
    'undecided'
    """
    _check_asked(metrics, tolerance, power)
    new, folder = _recorded(runs, machine=machine), History(Path(history))
    keys = folder.keys()
    key = new[0].key if against is None else folder.find(against)
    return against_recorded(
        folder.runs(key) if key in keys else [],
        new,
        key=key,
        figures=metrics,
        tolerance=tolerance,
        loss=power,
    )


def history_check_interleaved(  # noqa: PLR0913 - the flags of the command
    old: Side,
    new: Side,
    directory: str | Path | None = None,
    *,
    keys: Sequence[str] = (),
    metrics: Sequence[str] = DEFAULT_FIGURES,
    tolerance: float = TOLERANCE,
    power: float = LOSS,
    machine: str = "",
    blocks: int = 6,
    warm_up_blocks: int = 1,
    allow: Collection[str] = (),
    seed: int = 0,
    keep: bool = False,
    resume: bool = False,
    on_run: OnRun = lambda *_: None,
    listener: Listener | None = None,
) -> HistoryCheck:
    """Run old and new alternately, and judge whether new is as good as old.

    Equivalent to ``sbench history check --old --new``.

    Parameters
    ----------
    old, new
        A job, or a command that creates one run, such as ``"old/bin/sbench write --number 4"``.
    directory, keys
        See ``ab``; the runs are in ``old`` and ``new``.
    metrics, tolerance, power, machine
        See ``history_check``.
    blocks, warm_up_blocks, allow, seed, keep, resume, on_run, listener
        See ``ab``.

    Returns
    -------
    HistoryCheck
        Passed, regressed or undecided.

    Raises
    ------
    UsageError
        If there are too few blocks, or old and new differ in their work.
    SbenchError
        If a run fails; ``exit_code`` is the exit code of that run.

    Examples
    --------
    >>> few = {"blocks": 6, "warm_up_blocks": 0}
    >>> found = sbench.history_check_interleaved(writing, writing, "turns", **few)
    >>> found.interleaved, found.new
    (True, '6 runs of the new version in turns')
    """
    _check_asked(metrics, tolerance, power)
    turns = Turns(
        blocks=blocks,
        warm_up_blocks=warm_up_blocks,
        seed=seed,
        allow=allow,
        on_run=on_run,
    )
    series = series_in(directory, "history", keep=keep, resume=resume, listener=listener)
    samples = run_interleaved(series, {"old": old, "new": new}, turns, keys)
    figures = [{name: sample.metric(name) for name in metrics} for sample in samples]
    first = samples[1].runs[0].path
    return HistoryCheck(
        key=record(load_run(first, detail=False), machine=machine).key,
        interleaved=True,
        old="as many of the old one",
        new=f"{blocks} runs of the new version in turns",
        tolerance=tolerance,
        loss=power,
        findings=tuple(judge(by_block(metrics, *figures), tolerance=tolerance, loss=power)),
        notes=tuple(f"{name} differs: {a}, {b}" for name, (a, b) in what_differs(samples).items()),
    )


def _check_asked(metrics: Sequence[str], tolerance: float, power: float) -> None:
    """Reject metrics that cannot be compared, a power for an irrelevant loss, and missing SciPy.

    Raises
    ------
    PluginError
        If SciPy is not installed.
    UsageError
        If a metric or the power is invalid.
    """
    for name in metrics:
        more_is_better(name)
    if power <= tolerance:
        raise UsageError(
            f"`power` {power:g} is not above `tolerance` {tolerance:g}",
            hint="choose a larger loss, for example 10% with a tolerance of 5%",
        )
    require_scipy()


def _recorded(runs: Runs, *, machine: str, label: str = "") -> list[RecordedRun]:
    return [record(run, machine=machine, label=label) for run in load_runs(runs)]


def against_recorded(
    recorded_runs: Sequence[RecordedRun],
    new: Sequence[RecordedRun],
    *,
    key: str,
    figures: Sequence[str],
    tolerance: float,
    loss: float,
) -> HistoryCheck:
    """Check new runs, as a session, against recorded runs.

    Parameters
    ----------
    known
        Recorded runs, by age; runs that are also in ``new`` are ignored.
    new
        Runs of the same configuration.
    key
        Key of the recorded runs.
    figures, tolerance, loss
        See ``judge``.

    Raises
    ------
    UsageError
        If the new runs differ in configuration, or lack a metric.
    """
    _check_new(new, figures)
    ids = {run.run_id for run in new}
    others = [run for run in recorded_runs if run.run_id not in ids]
    old = of_the_same_work(others, new)
    number = len(others) - len(old)
    reason = "left out: of other work, or from before a restart"
    left_out = (f"{format_count(number, 'recorded run')} {reason}",) if number else ()
    return HistoryCheck(
        key=key,
        interleaved=False,
        old=f"{format_count(len(old), 'recorded run')} of"
        f" {format_count(len(sessions(old)), 'session')}",
        new=format_count(len(new), "new run"),
        tolerance=tolerance,
        loss=loss,
        findings=tuple(judge(of_recorded(figures, old, new), tolerance=tolerance, loss=loss)),
        notes=(*left_out, *_new_versions(old, new)),
    )


def _check_new(new: Sequence[RecordedRun], figures: Sequence[str]) -> None:
    """Reject runs of different configurations or work, or without a metric.

    Raises
    ------
    UsageError
        If the runs are rejected.
    """
    keys = sorted({run.key for run in new})
    hint = "check each of them separately"
    if len(keys) > 1:
        raise UsageError(f"the runs have different configurations: {', '.join(keys)}", hint=hint)
    if len(of_the_same_work(new, new)) < len(new):
        raise UsageError("the runs moved different amounts of bytes", hint=hint)
    for run in new:
        for name in figures:
            if name not in run.figures:
                available = ", ".join(sorted(run.figures))
                raise UsageError(
                    f"the run {run.run_id} has no {name}",
                    hint=f"choose another --metric: {available}",
                )


def _new_versions(old: Sequence[RecordedRun], new: Sequence[RecordedRun]) -> Iterator[str]:
    """Yield descriptions of versions that only the new runs have."""
    for name in dict.fromkeys(name for run in new for name in run.versions):
        before = {run.versions.get(name) for run in old}
        now = sorted({run.versions[name] for run in new if name in run.versions} - before)
        if now and old:
            yield f"{name} is new: {', '.join(now)}"
