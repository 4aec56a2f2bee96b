"""Digests of the files of a run directory, and whether the files still agree with them.

The driver notes length and SHA-256 of each file at every stage of a run: in ``run.json``
before the first function, in the line of each wave, and in its last line. These files only
grow, so a later stage covers the earlier ones. ``run.json`` has a digest of itself.
"""

import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from serverless_bench.errors import ArchiveError
from serverless_bench.rundir.files import open_file
from serverless_bench.rundir.listing import HEADER, LEDGER, RECORDS
from serverless_bench.rundir.run import Run
from serverless_bench.units import format_count

FILES: Final = "files"
"""Field of a stage that has the digests by file name."""
DIGEST: Final = "sha256"
"""Field of ``run.json`` that has the digest of all others but the seal."""
SEAL: Final = "origin"
"""Field of a stage that has the seal of the user who made it."""
_PIECE: Final = 1 << 20


class GrowingDigest:
    """Length, number of lines and SHA-256 of what was written so far."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._bytes = self._lines = 0

    def update(self, data: bytes) -> None:
        """Add what was written."""
        self._sha256.update(data)
        self._bytes += len(data)
        self._lines += data.count(b"\n")

    def to_json(self) -> dict[str, Any]:
        """Return the digest as a stage notes it."""
        sha256 = self._sha256.hexdigest()
        return {"bytes": self._bytes, "lines": self._lines, "sha256": sha256}


def digest_of(path: Path, most_bytes: int = sys.maxsize) -> GrowingDigest:
    """Return the digest of a file, or of its first bytes; that of no bytes if it is missing."""
    digest = GrowingDigest()
    with suppress(FileNotFoundError), open_file(path, buffering=0) as file:
        left = most_bytes
        while piece := file.read(min(_PIECE, left)):
            digest.update(piece)
            left -= len(piece)
    return digest


def header_digest(header: Mapping[str, Any]) -> str:
    """Return the digest of what ``run.json`` says, but for its digest and its seal."""
    fields = {name: value for name, value in header.items() if name not in {DIGEST, SEAL}}
    return hashlib.sha256(canonical(fields)).hexdigest()


def canonical(fields: Mapping[str, Any]) -> bytes:
    """Return fields as JSON in one form: JSON has neither tuples nor enumerations."""
    return orjson.dumps(orjson.loads(orjson.dumps(fields)), option=orjson.OPT_SORT_KEYS)


def is_intact(header: Mapping[str, Any]) -> bool:
    """Tell whether ``run.json`` says what its driver wrote, by its own digest."""
    with suppress(orjson.JSONEncodeError):
        return bool(header.get(DIGEST) == header_digest(header))
    return False


def file_problems(run: Run) -> tuple[str, ...]:
    """Return how the files of a run differ from what its driver noted of them.

    Nothing is known of what was written after the latest stage of a run that has not ended.

    Raises
    ------
    ArchiveError
        If a file cannot be read.
    """
    changed = not is_intact(run.stages[0])
    problems = [f"{HEADER} is not as the driver left it"] if changed else []
    return (*problems, *filter(None, _problem_by_file(run).values()))


def known_files(run: Run) -> frozenset[str]:
    """Return the names of the files that another driver may go on with and note again.

    They begin with what the driver noted. Records and keys may be longer: they grow between two
    stages. Keys in the ledger that no stage notes may be anybody's.

    Raises
    ------
    ArchiveError
        If a file cannot be read.
    """
    known = {name for name, problem in _problem_by_file(run).items() if not problem}
    ledger = _noted(run).get(LEDGER)
    if ledger is not None and digest_of(run.path / LEDGER).to_json() != ledger:
        known.discard(LEDGER)
    return frozenset(known)


def _noted(run: Run) -> dict[str, Mapping[str, Any]]:
    """Return the latest digest of each file, by name."""
    noted: dict[str, Mapping[str, Any]] = {}
    for stage in run.stages:
        noted |= stage[FILES]
    return noted


def _problem_by_file(run: Run) -> dict[str, str]:
    return {name: _problem(run, name, state) for name, state in sorted(_noted(run).items())}


def _problem(run: Run, name: str, state: Mapping[str, Any]) -> str:
    """Return how a file differs from its latest digest; empty if it does not."""
    path = run.path / name
    try:
        there = digest_of(path, state["bytes"]).to_json()
        size = path.stat().st_size if path.exists() else 0
    except OSError as exc:
        raise ArchiveError(f"cannot read {path}: {exc.strerror}") from exc
    lines = format_count(state["lines"], "line")
    if there["bytes"] < state["bytes"]:
        return f"{name} has {there['lines']} of the {lines} that the driver wrote"
    if there["sha256"] != state["sha256"]:
        return f"{name} is not as the driver left it"
    if size > state["bytes"] and run.ended and name != RECORDS:
        return f"{name} has more than the {lines} that the driver wrote"
    return ""
