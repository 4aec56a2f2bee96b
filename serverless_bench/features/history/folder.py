"""The folder of a history: a subfolder per key, and a file per run.

Files are never changed and do not refer to each other, so two branches that add runs merge without
conflicts. The content may come from other users: only small regular files are read, and validated.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.rundir.files import failing, open_file, replacing

if TYPE_CHECKING:
    from serverless_bench.features.history.recorded import RecordedRun

KEY: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,150}-[0-9a-f]{12}")
_MOST_BYTES: Final = 64 << 10
_MOST_RUNS: Final = 10_000
"""Maximum number of runs of a key, enough for nightly runs over 27 years."""
_HINT: Final = "remove it, or restore the file of `sbench history add` from git"


@dataclass(frozen=True, slots=True)
class History:
    """The runs recorded in a directory."""

    path: Path

    def keys(self) -> list[str]:
        """Return the keys that have a folder, in sorted order.

        Raises
        ------
        ArchiveError
            If the folder cannot be read, or contains a symbolic link.
        """
        return sorted(entry.name for entry in self._entries(self.path) if KEY.fullmatch(entry.name))

    def find(self, name: str) -> str:
        """Return the key with a name, or with a unique part of it.

        Raises
        ------
        UsageError
            If no key or more than one key matches.
        """
        keys = self.keys()
        matches = [name] if name in keys else [key for key in keys if name in key]
        if len(matches) == 1:
            return matches[0]
        problem = "multiple keys have" if matches else "no key has"
        raise UsageError(
            f"{problem} {name!r} in {self.path}", hint="sbench history ls lists the keys"
        )

    def runs(self, key: str) -> "list[RecordedRun]":
        """Return the runs of a key, oldest first; empty if the key does not exist.

        Raises
        ------
        ArchiveError
            If a file was not written by ``add``.
        """
        folder = self.path / key
        if not folder.is_dir():
            return []
        runs_by_id: dict[str, RecordedRun] = {}
        for entry in self._entries(folder):
            if not entry.name.endswith(".json"):
                continue
            run = _read(folder / entry.name)
            if run.key != key:
                raise ArchiveError(f"{folder / entry.name} has the key {run.key}", hint=_HINT)
            if run.run_id in runs_by_id:
                raise ArchiveError(
                    f"{folder / entry.name} is a duplicate of another file", hint=_HINT
                )
            runs_by_id[run.run_id] = run
        return sorted(runs_by_id.values(), key=lambda run: (run.created_ns, run.run_id))

    def add(self, run: "RecordedRun") -> bool:
        """Write a run; return whether it was new.

        Raises
        ------
        ArchiveError
            If the file cannot be written.
        """
        folder = self.path / run.key
        with failing(f"cannot write {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            if folder.is_symlink():
                raise _link(folder)
            path = folder / run.file_name
            if path.exists():
                return False
            with replacing(path) as file:
                file.write(run.to_text().encode())
        return True

    def _entries(self, folder: Path) -> Iterator["os.DirEntry[str]"]:
        """Yield the entries of a folder, except hidden files."""
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
                hint="sbench history add RUN creates one; --history sets its location",
            ) from None
        except OSError as exc:
            raise ArchiveError(f"cannot read {folder}: {exc.strerror}") from exc


def _read(path: Path) -> "RecordedRun":
    from serverless_bench.features.history.recorded import parse

    with failing(f"cannot read {path}"), open_file(path) as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ArchiveError(f"{path} has more than {_MOST_BYTES >> 10} KiB", hint=_HINT)
    try:
        return parse(text)
    except ValueError as exc:
        raise ArchiveError(f"{path}: {exc}", hint=_HINT) from None


def _link(path: Path) -> ArchiveError:
    return ArchiveError(
        f"{path} is a symbolic link", hint="a history only uses files in its own folder"
    )
