"""Continue a run of another process, for ``resume`` and ``stop``."""

import sys
from collections.abc import Callable
from pathlib import Path

from serverless_bench.cli.output.terminal import aside, complain, note
from serverless_bench.driver.origin import confirm
from serverless_bench.driver.run import CutShort
from serverless_bench.executors.base import RunProgress
from serverless_bench.metrics.summary import summarize
from serverless_bench.report import open_reporter, write_report
from serverless_bench.rundir.digests import file_problems
from serverless_bench.rundir.run import Run, load_run, lost_functions


def continue_run(
    directory: Path, format: str, act: Callable[..., Run], *, verb: str, trust: bool
) -> int:
    """Continue a run unless it is complete, report on it, and return the exit code.

    Parameters
    ----------
    directory
        Directory of the run.
    format
        Format of the report.
    act
        Called with the run, ``trust`` and ``live``; returns the continued run.
    verb
        Verb of the command, for its messages.
    trust
        Whether the run may be of another user.
    """
    reporter, run, live = open_reporter(format), load_run(directory), RunProgress()
    problem: CutShort | None = None
    if run.ended and not lost_functions(run):
        aside(f"{directory} is complete: nothing to {verb}")
    else:
        if places := confirm(run, trust=trust):
            aside(places)
        try:
            run = act(run, trust=trust, live=live)
        except CutShort as exc:
            problem, run = exc, exc.run
    contradictions = file_problems(run)
    note([*live.unprinted(), *contradictions])
    summary = summarize(run)
    write_report(reporter, summary, run, sys.stdout)
    sys.stdout.flush()
    return summary.exit_code(contradictions) if problem is None else complain(problem)
