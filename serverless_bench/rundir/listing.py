"""List the runs below a directory, and find them by name or age."""

import os
import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from serverless_bench.base.errors import ArchiveError, suggestion

HEADER: Final = "run.json"
"""File of each run directory, written once, before the first function."""
LEDGER: Final = "ledger.txt"
RECORDS: Final = "records.jsonl"
KEYS: Final = "keys.txt"
_RUN_FILES: Final = (HEADER, LEDGER, KEYS, RECORDS, "plot.png")
"""Files that a run or ``sbench demo`` writes to its directory."""
_START_BYTES: Final = 1 << 16
"""Bytes of ``run.json`` that are read to list a run: a header may have megabytes of code."""
_CREATED: Final = re.compile(rb'"created_ns": ?([1-9][0-9]{,18})\b')
_ELSEWHERE: Final = re.compile(rb'"(executor": ?"imported"|simulated": ?")')
"""Marks of a run that did not happen here when its directory was made."""
DEFAULT_ROOT: Final = Path("sbench-runs")
"""Directory of runs unless the user names another."""


class ListedRun(NamedTuple):
    """A run, or a series of runs, in a directory."""

    name: str
    """Name in commands: the path relative to the directory of runs."""
    path: Path
    created_ns: int
    """Time at which the run began, or the newest run of a series. For an imported or simulated
    run, the time at which its directory was made."""
    is_run: bool
    """False for the directory of a series (``ab``, ``scale``, ``study``)."""


def entries(root: Path) -> list[ListedRun]:
    """Return the runs and series directly below ``root``, most recent first."""
    paths = root.iterdir() if root.is_dir() else ()
    return _listed((path for path in paths if path.is_dir()), root)


def runs_below(root: Path, path: Path) -> list[ListedRun]:
    """Return all runs of a series, most recent first; names are relative to ``root``."""
    return _listed((header.parent for header in path.rglob(HEADER)), root)


def latest_run(root: Path) -> Path:
    """Return the most recently created run below ``root``.

    Raises
    ------
    ArchiveError
        If there is no run.
    """
    for entry in entries(root):
        if entry.is_run:
            return entry.path
    raise ArchiveError(
        f"there is no run in {root}", hint="sbench write makes one; see also --run-dir"
    )


def refuse_used(path: Path) -> None:
    """Raise an error for a directory that cannot take a new run.

    Raises
    ------
    ArchiveError
        If it has files of a run, or files named like them.
    """
    if any(os.path.lexists(path / name) for name in _RUN_FILES):
        holds = "a run" if os.path.lexists(path / HEADER) else "files named like those of a run"
        raise ArchiveError(
            f"{path} already holds {holds}", hint="choose another `name` or `run_dir`"
        )


def find_run(name: str | os.PathLike[str], root: Path) -> Path:
    """Return the run directory with the given path or name.

    Parameters
    ----------
    name
        A run directory, or a name relative to ``root``.
    root
        Directory of saved runs.

    Raises
    ------
    ArchiveError
        If the directory does not exist.
    """
    for path in (Path(name), root / name):
        if (path / HEADER).is_file():
            return path
    if Path(name).is_dir():
        # The run may be incomplete; reading it reports the missing file.
        return Path(name)
    entries_by_name = {entry.name: entry for entry in entries(root)}
    if str(name) in entries_by_name:
        raise ArchiveError(
            f"{name} is a series of runs, not a run", hint=f"sbench ls {name} lists its runs"
        )
    raise ArchiveError(
        f"there is no run {str(name)!r}: neither a directory nor a name in {root}",
        hint=suggestion(
            str(name),
            entries_by_name,
            otherwise="sbench ls lists the runs; sbench write creates a run",
        ),
    )


def as_argument(path: Path) -> str:
    """Return a run as an argument of commands: its name below the default root, or its path."""
    for root in (DEFAULT_ROOT, Path()):
        # It is elsewhere, or the current directory does not exist any more.
        with suppress(ValueError, OSError):
            return shlex.quote(str(path.absolute().relative_to(root.absolute())))
    return shlex.quote(str(path))


def _listed(paths: Iterable[Path], root: Path) -> list[ListedRun]:
    listed = [entry for path in paths if (entry := _entry(path, root))]
    return sorted(listed, key=lambda entry: (entry.created_ns, entry.name), reverse=True)


def _created_ns(header: Path) -> int:
    """Return the time that the first bytes of ``run.json`` state, or else that of the file.

    A copy, an archive or a checkout changes the time of a file.
    """
    with header.open("rb") as file:
        start = file.read(_START_BYTES)
    stated = None if _ELSEWHERE.search(start) else _CREATED.search(start)
    return int(stated[1]) if stated else header.stat().st_mtime_ns


def _entry(path: Path, root: Path) -> ListedRun | None:
    header = path / HEADER
    try:
        is_run = header.is_file()
        headers = [header] if is_run else [*path.rglob(HEADER)] or [*path.glob("result.json")]
        if not headers:
            return None
        return ListedRun(
            name=str(path.relative_to(root)) if path.is_relative_to(root) else str(path),
            path=path,
            created_ns=max(map(_created_ns, headers)),
            is_run=is_run,
        )
    except OSError:
        # Deleted in the meantime, or not readable.
        return None
