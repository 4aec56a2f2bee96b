"""Digests of the files of a run directory, and checks of the files against them.

The driver records the length and SHA-256 of each file at every stage of a run: in ``run.json``
before the first function, in the line of each wave, and in its last line. These files only
grow, so a later stage covers the earlier stages. ``run.json`` contains a digest of itself.
"""

import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from serverless_bench.base.units import format_count
from serverless_bench.rundir.files import failing, open_file
from serverless_bench.rundir.listing import HEADER, LEDGER, RECORDS
from serverless_bench.rundir.run import Run

FILES: Final = "files"
"""Field of a stage with the digests by file name."""
DIGEST: Final = "sha256"
"""Field of ``run.json`` with the digest of all other fields except the seal."""
SEAL: Final = "origin"
"""Field of a stage with the seal of the user who wrote it."""
_PIECE: Final = 1 << 20


class GrowingDigest:
    """Length, number of lines and SHA-256 of the data written until now."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._bytes = self._lines = 0

    def update(self, data: bytes) -> None:
        """Add data that was written."""
        self._sha256.update(data)
        self._bytes += len(data)
        self._lines += data.count(b"\n")

    def to_json(self) -> dict[str, Any]:
        """Return the digest as it is stored in a stage."""
        return {"bytes": self._bytes, "lines": self._lines, "sha256": self._sha256.hexdigest()}


def digest_of(path: Path, most_bytes: int = sys.maxsize) -> GrowingDigest:
    """Return the digest of a file or of its first bytes; a missing file counts as empty."""
    digest = GrowingDigest()
    with suppress(FileNotFoundError), open_file(path, buffering=0) as file:
        remaining = most_bytes
        while piece := file.read(min(_PIECE, remaining)):
            digest.update(piece)
            remaining -= len(piece)
    return digest


def header_digest(header: Mapping[str, Any]) -> str:
    """Return the digest of ``run.json`` without its digest and its seal."""
    fields = {name: value for name, value in header.items() if name not in {DIGEST, SEAL}}
    return hashlib.sha256(canonical(fields)).hexdigest()


def canonical(fields: Mapping[str, Any]) -> bytes:
    """Return fields as JSON in canonical form; JSON has neither tuples nor enumerations."""
    return orjson.dumps(orjson.loads(orjson.dumps(fields)), option=orjson.OPT_SORT_KEYS)


def is_intact(header: Mapping[str, Any]) -> bool:
    """Return whether ``run.json`` matches its digest."""
    with suppress(orjson.JSONEncodeError):
        return bool(header.get(DIGEST) == header_digest(header))
    return False


def file_problems(run: Run) -> tuple[str, ...]:
    """Return the differences between the files of a run and the driver's digests.

    Data written after the latest stage of an unfinished run is not checked.

    Raises
    ------
    ArchiveError
        If a file cannot be read.
    """
    changed = not is_intact(run.stages[0])
    problems = [f"{HEADER} was changed after the driver wrote it"] if changed else []
    return (*problems, *filter(None, _problem_by_file(run).values()))


def known_files(run: Run) -> frozenset[str]:
    """Return the names of the files that another driver may extend and record again.

    The part recorded by the driver must match. Records and keys may be longer, because they grow
    between stages. Keys in the ledger that no stage records could belong to other programs.

    Raises
    ------
    ArchiveError
        If a file cannot be read.
    """
    unchanged = {name for name, problem in _problem_by_file(run).items() if not problem}
    ledger = _noted(run).get(LEDGER)
    if ledger is not None and digest_of(run.path / LEDGER).to_json() != ledger:
        unchanged.discard(LEDGER)
    return frozenset(unchanged)


def _noted(run: Run) -> dict[str, Mapping[str, Any]]:
    """Return the latest recorded digest of each file, by name."""
    latest: dict[str, Mapping[str, Any]] = {}
    for stage in run.stages:
        latest |= stage[FILES]
    return latest


def _problem_by_file(run: Run) -> dict[str, str]:
    return {name: _problem(run, name, state) for name, state in sorted(_noted(run).items())}


def _problem(run: Run, name: str, state: Mapping[str, Any]) -> str:
    """Describe the difference between a file and its latest digest; empty if there is none."""
    path = run.path / name
    with failing(f"cannot read {path}"):
        current = digest_of(path, state["bytes"]).to_json()
        size = path.stat().st_size if path.exists() else 0
    lines = format_count(state["lines"], "line")
    if current["bytes"] < state["bytes"]:
        return f"{name} has {current['lines']} of the {lines} that the driver wrote"
    if current["sha256"] != state["sha256"]:
        return f"{name} was changed after the driver wrote it"
    if size > state["bytes"] and run.ended and name != RECORDS:
        return f"{name} has more than the {lines} that the driver wrote"
    return ""
