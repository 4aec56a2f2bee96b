"""Delete the objects of a run, when none of its functions can write any more."""

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from serverless_bench.analysis.display import Printed
from serverless_bench.clock import sleep, wall_ns
from serverless_bench.driver.array_files import remove_arrays
from serverless_bench.driver.bucket import Bucket, explained
from serverless_bench.driver.cleanup import Deleted, delete, delete_control
from serverless_bench.driver.origin import confirm
from serverless_bench.driver.run import resume_job
from serverless_bench.driver.target import relocated, target_of
from serverless_bench.job.load import is_in_files
from serverless_bench.job.target import Target
from serverless_bench.rundir.archive import refuse_if_locked
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import ABSENT, is_text
from serverless_bench.units import NS_PER_S, format_count, format_size

_MARGIN_S: Final = 5.0
"""What the clocks of driver and workers may be apart."""
_NO_LIST: Final = "uploads not looked for (this store does not list them)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned(Printed):
    """What ``clean`` did; ``print`` shows it as ``sbench clean`` does.

    Parameters
    ----------
    deleted
        What was deleted, what the store refused to delete, and what was left because the
        run did not write it.
    rest
        A line about objects below the prefix that are not of the run; empty if there are
        none, or if nobody looked.
    wrote_nothing
        Whether the run cannot have made any object.
    has_control
        Whether the run has claims and records, which are deleted with its objects.

    Examples
    --------
    >>> sbench.clean(read).wrote_nothing
    True
    """

    deleted: Deleted = field(default_factory=Deleted)
    rest: str = ""
    wrote_nothing: bool = False
    has_control: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing of the run is left."""
        return not self.deleted.failed and not self.deleted.foreign

    def __str__(self) -> str:
        if self.wrote_nothing:
            return "the run wrote no objects: nothing to delete"
        deleted = self.deleted
        records = f", {deleted.control} claims and records" if self.has_control else ""
        uploads = format_count(deleted.uploads, "upload")
        aborted = f"aborted {uploads}" if deleted.lists_uploads else _NO_LIST
        lines = [f"deleted {format_count(deleted.objects, 'object')}{records}, {aborted}"]
        return "\n".join([*lines, self.rest] if self.rest else lines)


def clean(
    run: Run | str | Path,
    *,
    survey: bool = False,
    trust: bool = False,
    on_message: Callable[[str], object] = lambda _: None,
) -> Cleaned:
    """Delete the objects of a run, and nothing else.

    Only keys in the run's own ledger are touched, and open multipart uploads of those, and
    only if what is there is what the run wrote. Claims and records go when no late delivery
    can begin any more: for a run on AWS Lambda this may wait for a minute.

    Parameters
    ----------
    run
        A saved run, or its directory.
    survey
        Whether to list the whole prefix after that, to say what else is there.
    trust
        Whether to use the store and the directory that the run names, though it was not made
        here and your own settings name others.
    on_message
        Called with a sentence before anything that takes time.

    Raises
    ------
    ArchiveError
        If the directory holds no run, or a driver still works on it.
    UsageError
        If it would have to be trusted.
    StoreError
        If the store does not answer or refuses.

    Examples
    --------
    >>> print(sbench.clean(written))
    deleted 4 objects, aborted 0 uploads
    """
    if not isinstance(run, Run):
        run = load_run(run, detail=False)
    ledger, control, in_files = run.ledger(), run.job.control, is_in_files(run.job.load)
    if not ledger and control is None and not in_files:
        return Cleaned(wrote_nothing=True)
    if where := confirm(run, trust=trust):
        on_message(where)
    if in_files:
        return Cleaned(deleted=Deleted(objects=remove_arrays(run)))
    if not run.ended:
        refuse_if_locked(run.path)
    return _clean_store(run, ledger, survey=survey, on_message=on_message)


def _clean_store(
    run: Run, ledger: Sequence[str], *, survey: bool, on_message: Callable[[str], object]
) -> Cleaned:
    """Delete what a run left in its store."""
    with target_of(run) as target:
        control = relocated(run.job, target).control
        died_ns = wall_ns() if _is_unfinished(run) else None
        if control is not None and died_ns is not None:
            on_message("its driver ended early: waiting for functions that still run")
            run = resume_job(run, launch=False, trust=True)
        deleted = delete(target, ledger)
        if control is not None:
            _outwait(run, died_ns, on_message)
            theirs = delete_control(control, run.run_id)
            deleted.control = theirs.control
            deleted.failed += theirs.failed
            deleted.foreign += theirs.foreign
        rest = _rest(target) if survey else ""
    return Cleaned(deleted=deleted, rest=rest, has_control=control is not None)


def _is_unfinished(run: Run) -> bool:
    """Tell whether functions may run that nobody waits for: the driver died, or was ended."""
    lost = is_text(run.functions["status"], "lost")
    return not run.ended or bool((run.functions["collected_ns"][lost] == ABSENT).any())


def _outwait(run: Run, died_ns: int | None, on_message: Callable[[str], object]) -> None:
    """Return when no delivery of this run can begin any more.

    As long as one can, its claim has to stay: it is what makes a second delivery stop.
    """
    functions = run.functions
    # What was refused at first was sent again later than it says.
    late = functions["refusals"] > 0
    sent_ns = np.where(late, functions["collected_ns"], functions["submitted_ns"])
    last_ns = max(int(sent_ns.max(initial=0)), died_ns or 0)
    until_ns = last_ns + round((run.job.start_timeout_s + _MARGIN_S) * NS_PER_S)
    left_s = (until_ns - wall_ns()) / NS_PER_S
    if left_s > 0:
        on_message(f"waiting {math.ceil(left_s)} s for deliveries that may come late")
        sleep(left_s)


def _rest(target: Target) -> str:
    """Say what else lies below the prefix: it costs money, and is not of this run."""
    with explained(target), closing(Bucket(target)) as bucket:
        objects, size, is_all = bucket.survey(target.prefix)
        uploads = bucket.uploads(target.prefix)
    if not objects and not uploads:
        return ""
    where = target.url
    number = "" if uploads is None else f", {format_count(len(uploads), 'open upload')}"
    embedded = "" if target.store is None else "; sbench store clear deletes all that is there"
    least = "" if is_all else "at least "
    return (
        f"not of this run, and still there below {where}: {least}{format_count(objects, 'object')}"
        f" ({format_size(size)}){number}{embedded}"
    )
