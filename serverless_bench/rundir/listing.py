"""Runs that are saved below a directory: by age, by name, and the last one."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serverless_bench.errors import ArchiveError

HEADER: Final = "run.json"
"""Every run directory has it, written once, before the first function."""
LEDGER: Final = "ledger.txt"
RECORDS: Final = "records.jsonl"
KEYS: Final = "keys.txt"
_LIST_THEM: Final = "sbench ls lists the runs; sbench write makes one"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run, or a series of runs: what has its own directory."""

    name: str
    """How commands call it: its path below the directory of runs."""
    path: Path
    saved_ns: int
    """When it was begun here; a run that was imported is older itself."""
    is_run: bool
    """False for the directory of a series (``ab``, ``scale``, ``exp``)."""


def entries(root: Path) -> list[ListedRun]:
    """Return the runs and the series directly below ``root``, the most recent one first."""
    paths = root.iterdir() if root.is_dir() else ()
    return _listed((path for path in paths if path.is_dir()), root)


def runs_below(root: Path, path: Path) -> list[ListedRun]:
    """Return all runs of a series, the most recent one first; names are those below ``root``."""
    return _listed((header.parent for header in path.rglob(HEADER)), root)


def latest_run(root: Path) -> Path:
    """Return the run below ``root`` that was begun last.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    for entry in entries(root):
        if entry.is_run:
            return entry.path
    raise ArchiveError(
        f"there is no run in {root}", hint="sbench write makes one; --run-dir says where they lie"
    )


def find_run(name: str | Path, root: Path) -> Path:
    """Return the run directory that ``name`` is the path or the name of.

    Parameters
    ----------
    name
        A run directory, or a name below ``root``.
    root
        Where runs are saved.

    Raises
    ------
    ArchiveError
        If there is no such directory.
    """
    for path in (Path(name), root / name):
        if (path / HEADER).is_file():
            return path
    if Path(name).is_dir():
        # It may hold half a run, and the reader says what is missing.
        return Path(name)
    known = {entry.name: entry for entry in entries(root)}
    if str(name) in known:
        raise ArchiveError(
            f"{name} is a series of runs, and no run", hint=f"sbench ls {name} lists its runs"
        )
    from difflib import get_close_matches  # noqa: PLC0415 - only who mistypes a name needs it

    alike = get_close_matches(str(name), known, n=1)
    raise ArchiveError(
        f"there is no run {str(name)!r}: neither a directory nor a name in {root}",
        hint=f"did you mean {alike[0]}?" if alike else _LIST_THEM,
    )


def _listed(paths: Iterable[Path], root: Path) -> list[ListedRun]:
    found = [entry for path in paths if (entry := _entry(path, root))]
    return sorted(found, key=lambda entry: (entry.saved_ns, entry.name), reverse=True)


def _entry(path: Path, root: Path) -> ListedRun | None:
    header = path / HEADER
    try:
        is_run = header.is_file()
        if not is_run and next(path.rglob(HEADER), None) is None:
            return None
        return ListedRun(
            name=str(path.relative_to(root)) if path.is_relative_to(root) else str(path),
            path=path,
            saved_ns=(header if is_run else path).stat().st_mtime_ns,
            is_run=is_run,
        )
    except OSError:
        # Deleted meanwhile, or not ours to read.
        return None
