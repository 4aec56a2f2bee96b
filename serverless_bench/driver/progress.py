"""A progress bar, on a terminal or in a notebook."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from serverless_bench.executors.base import OnOutcome, RunProgress
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import Outcome


@contextmanager
def shown(
    job: JobSpec,
    functions: int,
    live: RunProgress,
    on_outcome: OnOutcome,
    *,
    keys: Sequence[str] = (),
    wanted: bool,
) -> Iterator[OnOutcome]:
    """Yield what to call with each outcome: the bar, if one is wanted, then ``on_outcome``.

    Where nobody would see the bar, its library is not even loaded.
    """
    if not wanted or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield on_outcome
        return
    from serverless_bench.driver.progress_bar import RunView, progress_bar  # noqa: PLC0415

    view = RunView(job, functions, live, keys)

    def both(outcome: Outcome) -> None:
        view.add(outcome)
        on_outcome(outcome)

    with progress_bar(view):
        yield both
