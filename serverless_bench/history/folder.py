"""The folder of a history: a folder for each key, a file for each run.

Nobody changes a file, and no file lists others, so two branches that both add runs merge
without a conflict. What lies there may be anybody's: files are regular, small and checked.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serverless_bench.errors import ArchiveError, UsageError
from serverless_bench.history.recorded import KEY, RecordedRun, parse
from serverless_bench.rundir.files import open_file, replacing

_MOST_BYTES: Final = 64 << 10
_MOST_RUNS: Final = 10_000
"""Of one key; nightly runs of 27 years."""
_HINT: Final = "take it out, or bring back what `sbench history add` wrote: git log has it"


@dataclass(frozen=True, slots=True)
class History:
    """What was recorded below a directory."""

    path: Path

    def keys(self) -> list[str]:
        """Return the keys that have a folder, sorted.

        Raises
        ------
        ArchiveError
            If the folder cannot be read, or a link stands in it for a folder.
        """
        return sorted(entry.name for entry in self._entries(self.path) if KEY.fullmatch(entry.name))

    def find(self, name: str) -> str:
        """Return the key that a user means: all of it, or a part that one key alone has.

        Raises
        ------
        UsageError
            If it is no key's, or several keys'.
        """
        keys = self.keys()
        found = [name] if name in keys else [key for key in keys if name in key]
        if len(found) == 1:
            return found[0]
        what = "several keys have" if found else "no key has"
        raise UsageError(
            f"{what} {name!r} in {self.path}", hint="sbench history show lists the keys"
        )

    def runs(self, key: str) -> list[RecordedRun]:
        """Return the runs of a key, the oldest first; none if there is no such key.

        Raises
        ------
        ArchiveError
            If a file is none that ``add`` wrote.
        """
        folder = self.path / key
        if not folder.is_dir():
            return []
        found: dict[str, RecordedRun] = {}
        for entry in self._entries(folder):
            if not entry.name.endswith(".json"):
                continue
            run = _read(folder / entry.name)
            if run.key != key:
                raise ArchiveError(f"{folder / entry.name} is of the key {run.key}", hint=_HINT)
            if run.run_id in found:
                raise ArchiveError(
                    f"{folder / entry.name} is a run that another file has", hint=_HINT
                )
            found[run.run_id] = run
        return sorted(found.values(), key=lambda run: (run.created_ns, run.run_id))

    def add(self, run: RecordedRun) -> bool:
        """Write a run; return whether it was not there before.

        Raises
        ------
        ArchiveError
            If its file cannot be written.
        """
        folder = self.path / run.key
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if folder.is_symlink():
                raise _link(folder)
            path = folder / run.file_name
            if path.exists():
                return False
            with replacing(path) as file:
                file.write(run.to_text().encode())
        except OSError as exc:
            raise ArchiveError(f"cannot write {folder}: {exc.strerror}") from exc
        return True

    def _entries(self, folder: Path) -> Iterator["os.DirEntry[str]"]:
        """Yield what lies in a folder; hidden files are none of ours."""
        try:
            with os.scandir(folder) as listed:
                for number, entry in enumerate(listed):
                    if number > _MOST_RUNS:
                        raise ArchiveError(
                            f"{folder} has more than {_MOST_RUNS:,} files",
                            hint="git rm the oldest ones",
                        )
                    if entry.name.startswith("."):
                        continue
                    if entry.is_symlink():
                        raise _link(folder / entry.name)
                    yield entry
        except FileNotFoundError:
            raise ArchiveError(
                f"there is no history in {folder}",
                hint="sbench history add RUN begins one; --history says where it lies",
            ) from None
        except OSError as exc:
            raise ArchiveError(f"cannot read {folder}: {exc.strerror}") from exc


def _read(path: Path) -> RecordedRun:
    try:
        with open_file(path) as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as exc:
        raise ArchiveError(f"cannot read {path}: {exc.strerror}") from exc
    if len(text) > _MOST_BYTES:
        raise ArchiveError(f"{path} has more than {_MOST_BYTES >> 10} KiB", hint=_HINT)
    try:
        return parse(text)
    except ValueError as exc:
        raise ArchiveError(f"{path}: {exc}", hint=_HINT) from None


def _link(path: Path) -> ArchiveError:
    return ArchiveError(
        f"{path} is a symbolic link", hint="nothing outside of a history is read or written"
    )
