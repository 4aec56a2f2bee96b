"""Record runs in a history, and check new ones against it, or against old ones in turns."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from serverless_bench.analysis.run_comparison import Runs, load_runs
from serverless_bench.analysis.samples import more_is_better, what_differs
from serverless_bench.errors import UsageError
from serverless_bench.history.folder import History
from serverless_bench.history.judging import (
    DEFAULT_FIGURES,
    LOSS,
    TOLERANCE,
    by_block,
    judge,
    of_recorded,
    of_the_same_work,
    sessions,
)
from serverless_bench.history.recorded import RecordedRun, record, with_restart
from serverless_bench.history.showing import HistoryCheck
from serverless_bench.rundir.run import load_run
from serverless_bench.series.runs import Listener, series_in
from serverless_bench.series.turns import OnRun, Side, Turns, run_in_turns
from serverless_bench.statistics.verdict import require_scipy
from serverless_bench.units import format_count

HISTORY: Final = ".sbench-history"
"""Where runs are recorded, if nobody says."""


def history_add(
    runs: Runs,
    history: str | Path = HISTORY,
    *,
    machine: str = "",
    label: str = "",
    restart: bool = False,
) -> dict[Path, bool]:
    """Record runs in a folder that lives in git, as ``sbench history add`` does.

    All are looked at before one is recorded: a run that lost functions, or fails its
    self-checks, stands for nothing.

    Parameters
    ----------
    runs
        A run, a directory with one or several runs in it, or a list of those.
    history
        The folder; it is made if it is missing.
    machine
        Name of this machine, where several have one system and as many processors.
    label
        Name of the version that was run, such as a commit.
    restart
        Whether checks shall not look at older runs any more.

    Returns
    -------
    dict
        By the file of each run: whether it was not there before.

    Raises
    ------
    UsageError
        If the figures of a run cannot stand for its configuration.
    ArchiveError
        If a directory holds no run, or the history cannot be written.

    Examples
    --------
    >>> [*sbench.history_add([written, again], "history", label="v1").values()]
    [True, True]
    """
    made, kept = _recorded(runs, machine=machine, label=label), History(Path(history))
    if restart:
        made = with_restart(made)
    return {kept.path / run.key / run.file_name: kept.add(run) for run in made}


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
    """Say whether new runs are as good as recorded ones, as ``sbench history check`` does.

    Parameters
    ----------
    runs
        One run or several of one configuration, as in ``history_add``.
    history
        The folder with the recorded runs.
    against
        Key of the recorded runs, or a part of it; None for those of the same configuration.
    metrics
        Figures to check, as in ``compare``.
    tolerance
        Loss from which on it matters: 0.05 for 5 %.
    power
        Loss to say the power for.
    machine
        As in ``history_add``.

    Returns
    -------
    HistoryCheck
        Passed, regressed or undecided; docs/history.md says what the verdicts promise.

    Raises
    ------
    UsageError
        If the runs are of several configurations, lack a figure, or cannot be recorded.
    ArchiveError
        If there is no history.

    Examples
    --------
    >>> sbench.history_check(again, "history").verdict.value
    'undecided'
    """
    _check_asked(metrics, tolerance, power)
    new, kept = _recorded(runs, machine=machine), History(Path(history))
    keys = kept.keys()
    key = new[0].key if against is None else kept.find(against)
    return against_recorded(
        kept.runs(key) if key in keys else [],
        new,
        key=key,
        figures=metrics,
        tolerance=tolerance,
        loss=power,
    )


def history_check_in_turns(  # noqa: PLR0913 - the flags of the command
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
    """Run old and new in turns, and say whether new is as good as old.

    As ``sbench history check --old --new`` does.

    Parameters
    ----------
    old, new
        A job, or a command that makes one run, as in ``"old/bin/sbench write --number 4"``.
    directory, keys
        As in ``ab``; runs lie in ``old`` and ``new``.
    metrics, tolerance, power, machine
        As in ``history_check``.
    blocks, warm_up_blocks, allow, seed, keep, resume, on_run, listener
        As in ``ab``.

    Returns
    -------
    HistoryCheck
        Passed, regressed or undecided.

    Raises
    ------
    UsageError
        If there are too few blocks, or old and new do not do the same work.
    SbenchError
        If a run does not come to a good end; ``exit_code`` is that run's.

    Examples
    --------
    >>> few = {"blocks": 6, "warm_up_blocks": 0}
    >>> found = sbench.history_check_in_turns(writing, writing, "turns", **few)
    >>> found.in_turns, found.new
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
    samples = run_in_turns(series, {"old": old, "new": new}, turns, keys)
    figures = [{name: sample.metric(name) for name in metrics} for sample in samples]
    first = samples[1].runs[0].path
    return HistoryCheck(
        key=record(load_run(first, detail=False), machine=machine).key,
        in_turns=True,
        old="as many of the old one",
        new=f"{blocks} runs of the new version in turns",
        tolerance=tolerance,
        loss=power,
        findings=tuple(judge(by_block(metrics, *figures), tolerance=tolerance, loss=power)),
        notes=tuple(f"{name} differs: {a}, {b}" for name, (a, b) in what_differs(samples).items()),
    )


def _check_asked(metrics: Sequence[str], tolerance: float, power: float) -> None:
    """Refuse figures that cannot be compared, and a power for a loss that does not matter.

    Raises
    ------
    UsageError
        If there is one.
    PluginError
        If SciPy is not installed.
    """
    require_scipy()
    for name in metrics:
        more_is_better(name)
    if power <= tolerance:
        raise UsageError(
            f"`power` {power:g} is not above `tolerance` {tolerance:g}",
            hint="what does not matter is not looked for: a loss of 10% with a tolerance of 5%",
        )


def _recorded(runs: Runs, *, machine: str, label: str = "") -> list[RecordedRun]:
    return [record(run, machine=machine, label=label) for run in load_runs(runs)]


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
    number = len(others) - len(old)
    why = "left out: of other work, or from before a restart"
    left_out = (f"{format_count(number, 'recorded run')} {why}",) if number else ()
    return HistoryCheck(
        key=key,
        in_turns=False,
        old=f"{format_count(len(old), 'recorded run')} of"
        f" {format_count(len(sessions(old)), 'session')}",
        new=format_count(len(new), "new run"),
        tolerance=tolerance,
        loss=loss,
        findings=tuple(judge(of_recorded(figures, old, new), tolerance=tolerance, loss=loss)),
        notes=(*left_out, *_new_versions(old, new)),
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


def _new_versions(old: Sequence[RecordedRun], new: Sequence[RecordedRun]) -> Iterator[str]:
    """Yield which versions the new runs have and no old one had."""
    for name in dict.fromkeys(name for run in new for name in run.versions):
        before = {run.versions.get(name) for run in old}
        now = sorted({run.versions[name] for run in new if name in run.versions} - before)
        if now and old:
            yield f"{name} is new: {', '.join(now)}"
