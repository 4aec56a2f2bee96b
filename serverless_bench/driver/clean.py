"""Delete the objects of a run after the last function can no longer write."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from serverless_bench.base.clock import sleep, wall_ns
from serverless_bench.base.errors import PluginError, StoreError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import NS_PER_S, format_count, format_size
from serverless_bench.driver.bucket import open_bucket
from serverless_bench.driver.cleanup import Deleted, delete, delete_control
from serverless_bench.driver.origin import confirm
from serverless_bench.driver.policy import driver_policies_of
from serverless_bench.driver.run import resume_job
from serverless_bench.driver.run_keys import RunKeys, later_keys, run_keys
from serverless_bench.driver.target import located
from serverless_bench.job.abilities import ThroughLibrary
from serverless_bench.job.target import Target
from serverless_bench.metrics.display import Printed
from serverless_bench.rundir.files import locked, note_cleaning
from serverless_bench.rundir.run import AnyRun, Run, as_run, load_run
from serverless_bench.rundir.tables import ABSENT, is_text

_MARGIN_S: Final = 5.0
"""Largest expected difference between the clocks of driver and workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVersions:
    """Versions of some keys that a bucket keeps.

    Parameters
    ----------
    count
        Number of versions with data: of deleted and of overwritten objects.
    text
        A line with the kept versions and their cost; empty if there are none.
    deleted
        Number of versions and delete markers that were permanently deleted.
    """

    count: int = 0
    text: str = ""
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned(Printed):
    """Result of ``clean``; ``print`` shows it in the format of ``sbench clean``.

    Parameters
    ----------
    deleted
        Deleted objects, objects that the store failed to delete, and objects that were kept
        because the run did not write them.
    rest
        A line about objects below the prefix that do not belong to the run; empty if there are
        none or without a survey.
    wrote_nothing
        Whether the run cannot have created an object.
    has_control
        Whether the run has claims and records, which are deleted with its objects.
    problems
        Missing or contradictory data in the run directory; if there are any, objects of the
        run may remain.
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
        """Whether all data of the run has been deleted."""
        stays = self.deleted.failed or self.deleted.foreign or self.kept.count
        return not (stays or self.problems)

    def complaints(self) -> Iterator[str]:
        """Yield a line for each object that stays, for the reason, and for each problem."""
        deleted = self.deleted
        yield from (f"sbench: the store refused to delete {key}" for key in deleted.failed)
        why = deleted.reason and f"sbench: {deleted.left}"
        yield from filter(
            None, (why, deleted.remedy and f"hint: {deleted.remedy}, then clean again")
        )
        yield from (f"sbench: kept {key}, as this run did not write it" for key in deleted.foreign)
        yield from (f"sbench: {problem}" for problem in self.problems)

    def __str__(self) -> str:
        if self.wrote_nothing:
            return "the run wrote no objects: nothing to delete"
        deleted = self.deleted
        records = f", {deleted.control} claims and records" if self.has_control else ""
        uploads = format_count(deleted.uploads, "upload")
        aborted = (
            f"aborted {uploads}"
            if deleted.lists_uploads
            else "uploads not looked for (the store has no list of them, or denies it)"
        )
        lines = [f"deleted {format_count(deleted.objects, 'object')}{records}, {aborted}"]
        if self.kept.deleted:
            versions = format_count(self.kept.deleted, "version")
            lines.append(f"deleted {versions} and delete markers for good")
        return "\n".join([*lines, *filter(None, (self.kept.text, self.rest))])


def clean(
    run: AnyRun,
    *,
    survey: bool = False,
    versions: bool = False,
    trust: bool = False,
    give_back: bool = True,
    on_message: Callable[[str], object] = lambda _: None,
) -> Cleaned:
    """Delete the objects of a run and nothing else.

    Only keys of the run and their open multipart uploads are deleted, and only if the run wrote
    the current data. Claims and records are deleted when no late delivery can start any more: for
    a run on AWS Lambda this can take a minute. The run directory records the start of the
    deletion, and no other command can use it until the deletion is complete.

    Parameters
    ----------
    run
        A run, its name or its directory.
    survey
        Whether to list the whole prefix afterwards and report remaining objects.
    versions
        Whether to permanently delete the versions that a bucket with versioning keeps.
    trust
        Whether to access the resources of a run that was made elsewhere.
    give_back
        Whether the embedded store returns their space to the disk, which takes seconds.
    on_message
        Called with a sentence before slow steps.

    Raises
    ------
    ArchiveError
        If the directory contains no run, cannot be written, or is used by another command.
    UsageError
        If the run is not trusted, or cannot have any objects in a store.
    StoreError
        If the store does not respond or denies access.

    Examples
    --------
    >>> print(sbench.clean(written))
    deleted 4 objects, aborted 0 uploads
    """
    run = as_run(run, detail=False)
    if origin := confirm(run, trust=trust):
        on_message(origin)
    died_ns = wall_ns() if _is_unfinished(run) else None
    # An interrupted cleanup has already waited for the functions of its run.
    if run.job.control is not None and died_ns is not None and run.cleaning_ns is None:
        on_message("its driver ended early: waiting for functions that still run")
        resume_job(run, launch=False, trust=True)
    with locked(run.path) as records:
        run = load_run(run.path, detail=False)
        known_keys, in_files = run_keys(run), run.job.load.folder is not None
        if not (known_keys.keys or in_files or run.job.control is not None):
            return Cleaned(wrote_nothing=True, problems=known_keys.problems)

        def begin() -> None:
            if run.cleaning_ns is None:
                note_cleaning(records, run.path, wall_ns())

        if in_files:
            begin()
            workload = run.job.declared
            removed = workload.remove_files(run) if isinstance(workload, ThroughLibrary) else 0
            return Cleaned(
                deleted=Deleted(objects=removed),
                problems=known_keys.problems,
            )
        with located(run.job) as job:
            here, workload = replace(run, job=job), job.declared
            remove = partial(
                delete, job.target, workload=workload, give_back=give_back, on_begin=begin
            )
            cleaned = _clean_store(here, remove, known_keys, died_ns, on_message, survey=survey)
            if not (versions or cleaned.deleted.kept):
                return cleaned
            return _with_versions(cleaned, here, known_keys.keys, delete=versions)


def _with_versions(cleaned: Cleaned, run: Run, keys: Collection[str], *, delete: bool) -> Cleaned:
    try:
        return replace(cleaned, kept=TOOLS.load("versions")(run, keys, delete=delete))
    except (PluginError, StoreError) as exc:
        unknown = f"older versions of its objects were not looked for: {exc}"
        return replace(cleaned, problems=(*cleaned.problems, unknown))


def _clean_store(
    run: Run,
    remove: Callable[[Iterable[str]], Deleted],
    known_keys: RunKeys,
    died_ns: int | None,
    on_message: Callable[[str], object],
    *,
    survey: bool,
) -> Cleaned:
    """Delete objects, then claims and records, then objects that the run's files do not mention."""
    deleted, problems, rest = remove(known_keys.keys), [*known_keys.problems], ""
    control = run.job.control
    if control is not None:
        _outwait(run, died_ns, on_message)
        deleted.add(delete_control(control, run.run_id))
    if survey or problems or died_ns is not None:
        rest = _look_around(run, remove, deleted, problems, known_keys.keys)
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
    """Delete objects that are still listed, and objects of launches that no file mentions.

    If the last lines of ledger and records were removed, complete launches are missing there.
    A key of the run is listed again if it was written late or the listing is outdated.

    Returns
    -------
    str
        A line about the remaining objects below the prefix.
    """
    target, key_set = run.job.target, frozenset(keys)
    try:
        with open_bucket(target) as bucket:
            sizes, is_all = bucket.survey(target.prefix)
            uploads = bucket.uploads(target.prefix)
    except StoreError as exc:
        # What the run's files name is deleted already.
        unknown = f"what else is below {target.url} is not known: {exc}"
        if problems or not run.ended:
            problems.append(unknown)
        return unknown
    listed = set(sizes).difference(deleted.foreign, deleted.failed)
    still_listed = listed.intersection(key_set)
    later = later_keys(run, listed.difference(key_set))
    removed = remove((*still_listed, *later)) if still_listed or later else Deleted()
    deleted.add(removed)
    ours = still_listed.union(later).difference(removed.foreign).union(deleted.failed)
    others = [size for key, (size, _) in sizes.items() if key not in ours]
    objects = len(others)
    if later:
        object_count = format_count(len(later), "object")
        problems.append(f"the files of the run do not mention {object_count} of later launches")
    if not is_all and problems:
        inspected = format_count(objects, "object")
        problems.append(f"only the first {inspected} below {target.url} were inspected")
    return _rest(target, objects, sum(others), uploads, is_all=is_all)


def _is_unfinished(run: Run) -> bool:
    """Return whether functions may still run after the driver died or was interrupted."""
    lost = is_text(run.functions["status"], "lost")
    return not run.ended or bool((run.functions["collected_ns"][lost] == ABSENT).any())


def _outwait(run: Run, died_ns: int | None, on_message: Callable[[str], object]) -> None:
    """Wait until no delivery of this run can start any more.

    The claims have to remain until then, because they stop a second delivery.
    """
    functions = run.functions
    # An invocation that was throttled at first was sent later than ``submitted_ns``.
    late = functions["refusals"] > 0
    sent_ns = np.where(late, functions["collected_ns"], functions["submitted_ns"])
    last_ns = max(int(sent_ns.max(initial=0)), died_ns or 0)
    delay_s = max((policy.delay_s(run.job) for policy in driver_policies_of(run.job)), default=0.0)
    until_ns = last_ns + round((delay_s + _MARGIN_S) * NS_PER_S)
    remaining_s = (until_ns - wall_ns()) / NS_PER_S
    if remaining_s > 0:
        on_message(f"waiting {math.ceil(remaining_s)} s for deliveries that may come late")
        sleep(remaining_s)


def _rest(target: Target, objects: int, size: int, uploads: Sized | None, *, is_all: bool) -> str:
    """Return a line about other objects below the prefix, which cost money, too."""
    if not objects and not uploads:
        return ""
    number = "" if uploads is None else f", {format_count(len(uploads), 'open upload')}"
    embedded = "" if target.store is None else ". `sbench store clear` deletes everything"
    least = "" if is_all else "at least "
    return (
        f"{least}{format_count(objects, 'object')} ({format_size(size)}){number} of other runs"
        f" remain under {target.url}{embedded}"
    )
