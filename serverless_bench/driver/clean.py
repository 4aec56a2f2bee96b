"""Delete the objects of a run, when none of its functions can write any more."""

import math
from collections.abc import Callable, Collection, Iterable, Sized
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from serverless_bench.analysis.display import Printed
from serverless_bench.clock import sleep, wall_ns
from serverless_bench.driver.bucket import open_bucket
from serverless_bench.driver.cleanup import Deleted, delete, delete_control
from serverless_bench.driver.origin import confirm
from serverless_bench.driver.run import resume_job
from serverless_bench.driver.run_keys import RunKeys, later_keys, run_keys
from serverless_bench.driver.target import located
from serverless_bench.driver.versions import KeptVersions, kept_versions
from serverless_bench.job.target import Target
from serverless_bench.rundir.lock import locked, note_cleaning
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
    problems
        What the run directory lacks or contradicts: with any, objects of the run may be left.
    kept
        Versions that a bucket with versioning keeps.

    Examples
    --------
    >>> sbench.clean(read).wrote_nothing
    True
    """

    deleted: Deleted = field(default_factory=Deleted)
    rest: str = ""
    wrote_nothing: bool = False
    has_control: bool = False
    problems: tuple[str, ...] = ()
    kept: KeptVersions = field(default_factory=KeptVersions)

    @property
    def complete(self) -> bool:
        """Whether nothing of the run is left."""
        stays = self.deleted.failed or self.deleted.foreign or self.kept.count
        return not (stays or self.problems)

    def __str__(self) -> str:
        if self.wrote_nothing:
            return "the run wrote no objects: nothing to delete"
        deleted = self.deleted
        records = f", {deleted.control} claims and records" if self.has_control else ""
        uploads = format_count(deleted.uploads, "upload")
        aborted = f"aborted {uploads}" if deleted.lists_uploads else _NO_LIST
        lines = [f"deleted {format_count(deleted.objects, 'object')}{records}, {aborted}"]
        if self.kept.deleted:
            versions = format_count(self.kept.deleted, "version")
            lines.append(f"deleted {versions} and delete markers for good")
        return "\n".join([*lines, *filter(None, (self.kept.text, self.rest))])


def clean(
    run: Run | str | Path,
    *,
    survey: bool = False,
    versions: bool = False,
    trust: bool = False,
    give_back: bool = True,
    on_message: Callable[[str], object] = lambda _: None,
) -> Cleaned:
    """Delete the objects of a run, and nothing else.

    Only keys of the run are touched, and open multipart uploads of those, and only if what
    is there is what the run wrote. Claims and records go when no late delivery can begin any
    more: for a run on AWS Lambda this may wait for a minute. Before the first deletion the
    run's directory notes that its objects go; until the last one no other command works on it.

    Parameters
    ----------
    run
        A saved run, or its directory.
    survey
        Whether to list the whole prefix after that, to say what else is there.
    versions
        Whether to delete for good what a bucket with versioning keeps of deleted objects.
    trust
        Whether to use what the run names, though it was not made here.
    give_back
        Whether the embedded store gives their space back to the disk, which takes seconds.
    on_message
        Called with a sentence before anything that takes time.

    Raises
    ------
    ArchiveError
        If the directory holds no run, cannot be written, or another command works on its run.
    UsageError
        If it would have to be trusted, or there can be nothing of it on any store.
    StoreError
        If the store does not answer or refuses.

    Examples
    --------
    >>> print(sbench.clean(written))
    deleted 4 objects, aborted 0 uploads
    """
    if not isinstance(run, Run):
        run = load_run(run, detail=False)
    if where := confirm(run, trust=trust):
        on_message(where)
    died_ns = wall_ns() if _is_unfinished(run) else None
    # What was being cleaned up had been brought to its end before that.
    if run.job.control is not None and died_ns is not None and run.cleaning_ns is None:
        on_message("its driver ended early: waiting for functions that still run")
        resume_job(run, launch=False, trust=True)
    with locked(run.path) as records:
        run = load_run(run.path, detail=False)
        found, in_files = run_keys(run), run.job.load.folder is not None
        if not (found.keys or in_files or run.job.control is not None):
            return Cleaned(wrote_nothing=True, problems=found.problems)

        def begin() -> None:
            if run.cleaning_ns is None:
                note_cleaning(records, run.path, wall_ns())

        if in_files:
            begin()
            return Cleaned(
                deleted=Deleted(objects=run.job.declared.remove_files(run)),
                problems=found.problems,
            )
        with located(run.job) as job:
            here, in_arrays = replace(run, job=job), job.load.library is not None
            remove = partial(
                delete, job.target, in_arrays=in_arrays, give_back=give_back, on_begin=begin
            )
            cleaned = _clean_store(here, remove, found, died_ns, on_message, survey=survey)
            if not (versions or cleaned.deleted.kept):
                return cleaned
            kept = kept_versions(
                job.target,
                job.control,
                run.run_id,
                found.keys,
                in_arrays=in_arrays,
                delete=versions,
            )
            return replace(cleaned, kept=kept)


def _clean_store(
    run: Run,
    remove: Callable[[Iterable[str]], Deleted],
    found: RunKeys,
    died_ns: int | None,
    on_message: Callable[[str], object],
    *,
    survey: bool,
) -> Cleaned:
    """Delete objects, then claims and records, then what no file of the run tells of."""
    deleted, problems, rest = remove(found.keys), [*found.problems], ""
    control = run.job.control
    if control is not None:
        _outwait(run, died_ns, on_message)
        deleted.add(delete_control(control, run.run_id))
    if survey or problems or died_ns is not None:
        rest = _look_around(run, remove, deleted, problems, found.keys)
    return Cleaned(
        deleted=deleted,
        rest=rest if survey else "",
        has_control=control is not None,
        problems=tuple(problems),
    )


def _look_around(
    run: Run,
    remove: Callable[[Iterable[str]], Deleted],
    deleted: Deleted,
    problems: list[str],
    keys: Collection[str],
) -> str:
    """Delete objects that are still listed, and those of launches that no file tells of.

    Whoever cut the last lines off the ledger and the records has taken whole launches away.
    A known key was written late, or the listing is older than its deletion.

    Returns
    -------
    str
        What else lies below the prefix.
    """
    target, known = run.job.target, frozenset(keys)
    with open_bucket(target) as bucket:
        there, size, is_all = bucket.survey(target.prefix)
        uploads = bucket.uploads(target.prefix)
    objects, listed = len(there), set(there).difference(deleted.foreign, deleted.failed)
    again = listed.intersection(known)
    later = later_keys(run, listed.difference(known))
    if again or later:
        more = remove((*again, *later))
        deleted.add(more)
        objects -= len(again) + len(later) - len(more.failed) - len(more.foreign)
    if later:
        lost = format_count(len(later), "object")
        problems.append(f"no file of the run tells of {lost} of later launches")
    if not is_all and problems:
        looked = format_count(objects, "object")
        problems.append(f"only the first {looked} below {target.url} were looked at")
    return _rest(target, objects, size, uploads, is_all=is_all)


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
    until_ns = last_ns + round((run.job.start_timeout + _MARGIN_S) * NS_PER_S)
    left_s = (until_ns - wall_ns()) / NS_PER_S
    if left_s > 0:
        on_message(f"waiting {math.ceil(left_s)} s for deliveries that may come late")
        sleep(left_s)


def _rest(target: Target, objects: int, size: int, uploads: Sized | None, *, is_all: bool) -> str:
    """Say what else lies below the prefix: it costs money, and is not of this run."""
    if not objects and not uploads:
        return ""
    number = "" if uploads is None else f", {format_count(len(uploads), 'open upload')}"
    embedded = "" if target.store is None else "; sbench store clear deletes all that is there"
    least = "" if is_all else "at least "
    return (
        f"not of this run, and still there below {target.url}: {least}"
        f"{format_count(objects, 'object')} ({format_size(size)}){number}{embedded}"
    )
