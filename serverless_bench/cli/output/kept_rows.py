"""Rows of ``sbench ls``, kept between calls: only new and changed runs are analysed."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from serverless_bench.version import __version__

Row = dict[str, Any]
_MOST_ROWS: Final = 1000


class KeptRows:
    """Rows by run directory, in a file of this user.

    Parameters
    ----------
    file
        The file; it is ignored if it is missing, damaged, or of another version of sbench.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows: dict[str, tuple[object, Row]] = {}
        self._is_new = False
        with suppress(OSError, ValueError, KeyError, TypeError):
            self._rows = json.loads(file.read_bytes())[__version__]

    def row(self, path: Path, make: Callable[[Path], Row]) -> Row:
        """Return the kept row of a run directory, or a new one if a file has changed."""
        key, files = str(path.absolute()), _files(path)
        if key in self._rows and self._rows[key][0] == files:
            return self._rows[key][1]
        row = make(path)
        self._rows.pop(key, None)
        self._rows[key] = (files, row)
        self._is_new = True
        return row

    def save(self) -> None:
        """Write the most recent rows, if any are new and the file can be written."""
        if not self._is_new:
            return
        from serverless_bench.base.errors import SbenchError
        from serverless_bench.base.user_files import own_directory, private_draft

        data = json.dumps({__version__: dict([*self._rows.items()][-_MOST_ROWS:])}).encode()
        with suppress(OSError, SbenchError):
            own_directory(self._file.parent)
            with private_draft(self._file, data) as draft:
                draft.replace(self._file)


def _files(path: Path) -> list[list[object]]:
    """Return name, size and time of each file of a run directory."""
    statuses = ((file.name, file.stat()) for file in sorted(path.iterdir()))
    return [[name, status.st_size, status.st_mtime_ns, status.st_ino] for name, status in statuses]
