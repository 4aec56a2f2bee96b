"""Whether a run was made here, by this user; and what another one's directory may have us do.

A run directory says where requests go and which functions are invoked, and it may come from
anybody. What its driver notes of it (the header, and the lines of waves and ends) therefore
carries a seal, made with a key that never leaves the user's own state directory. A directory
whose header has none is used only if the user says so. docs/decisions/0039 has the reasons.
"""

import hmac
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import platformdirs

from serverless_bench.errors import ArchiveError, UsageError
from serverless_bench.job.endpoint import parse_endpoint
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.types import wrong
from serverless_bench.process.private import private_draft, read_private
from serverless_bench.rundir.digests import SEAL, canonical, is_intact
from serverless_bench.rundir.listing import HEADER
from serverless_bench.rundir.run import Run, read_header

IMPORTED: Final = "imported"
"""Executor of runs that are results of another tool; see ``formats.importers.saving``."""
_KEY_BYTES: Final = 32
_SHOWN: Final = 3
"""Functions that a message names."""


def sealed(stage: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is noted of a new run with this user's seal."""
    with suppress(OSError):
        if _stored_key() is None:
            _store_key()
    return {**stage, SEAL: _seal(stage, _stored_key() or _fleeting_key())}


def is_sealed(stage: Mapping[str, Any]) -> bool:
    """Tell whether this user noted this of a run, and nothing of it was changed since."""
    fields = {**stage}
    seal = fields.pop(SEAL, None)
    if not isinstance(seal, str) or not seal.isascii():
        return False
    keys = (_stored_key(), _fleeting_key())
    # What is nested deeper than can be written was not written by us.
    with suppress(orjson.JSONEncodeError):
        return any(key and hmac.compare_digest(_seal(fields, key), seal) for key in keys)
    return False


def is_ours(path: Path) -> bool:
    """Tell whether this user made the run in a directory, and its header is as it was then."""
    return is_sealed(read_header(path))


def confirm(run: Run, *, trust: bool) -> str:
    """Refuse a run that was not made here, unless its user says that it is meant.

    Parameters
    ----------
    run
        Of the directory. No request is made, and no name is looked up.
    trust
        Whether it is meant.

    Returns
    -------
    str
        What will be asked, and where, if the run was not made here; empty if it was.

    Raises
    ------
    UsageError
        If the run was not made here and nobody trusts it; or if there can be nothing of it on
        any store, because it was simulated or imported.
    ArchiveError
        If the run was not made here, and its header was changed since it was made.
    """
    if run.simulated is not None or run.job.executor == IMPORTED:
        raise UsageError(
            f"{run.path} was {'imported' if run.simulated is None else 'simulated'}: sbench has"
            " written nothing of it to any store",
            hint="delete the directory, and it is gone",
        )
    if is_ours(run.path):
        return ""
    places = ", ".join(_places(run.job))
    if not trust:
        raise UsageError(
            f"{run.path} was not made here; it uses {places}",
            hint="--trust if you know whose it is, and mean these (trust=True in Python)",
        )
    if not is_intact(run.stages[0]):
        raise ArchiveError(
            f"{run.path / HEADER} is not as its driver wrote it",
            hint="nobody can tell what the run did: nothing is launched or deleted",
        )
    return f"{run.path} was not made here; it uses {places}"


def _places(job: JobSpec) -> Iterator[str]:
    """Yield what a job uses: directories, stores, functions, clusters."""
    folder = job.load.folder
    if folder is not None:
        yield f"the directory {folder!r}"
    else:
        yield from _stores(job)
    if job.function:
        more = f" and {len(job.function) - _SHOWN} more" if len(job.function) > _SHOWN else ""
        names = ", ".join(map(repr, job.function[:_SHOWN]))
        yield f"the functions {names}{more}"
    if job.scheduler is not None:
        yield f"the Dask scheduler {job.scheduler!r}"


def _stores(job: JobSpec) -> Iterator[str]:
    """Yield the endpoint and the bucket of each kind of request."""
    target, control = job.target, job.control
    # Where this is named the embedded store is meant, at the address that it has now.
    embedded_url = None if target.store is None else target.endpoint_url
    if embedded_url is not None:
        yield "the embedded store"
    targets = [target, *((control,) if control is not None else ())]
    named = [(each, each.endpoint_url) for each in targets if each.endpoint_url != embedded_url]
    for each, url in dict.fromkeys((*named, *((target, url) for url in job.endpoints))):
        endpoint = parse_endpoint(url) if url else ""
        if endpoint != url.removesuffix("/"):
            raise wrong("endpoint_url", f"{url!r} is not a URL of a store")
        yield f"{endpoint or 'AWS'} (bucket {each.bucket_name!r})"


def _seal(stage: Mapping[str, Any], key: bytes) -> str:
    return hmac.digest(key, canonical(stage), "sha256").hex()


def _key_path() -> Path:
    return platformdirs.user_state_path("sbench") / "origin.key"


@cache
def _fleeting_key() -> bytes:
    """Return a key for as long as this process lives, where none can be stored."""
    return secrets.token_bytes(_KEY_BYTES)


def _stored_key() -> bytes | None:
    """Return the user's key; None if there is none, or somebody else may know it."""
    key = read_private(_key_path(), _KEY_BYTES)
    return key if key is not None and len(key) == _KEY_BYTES else None


def _store_key() -> None:
    """Make the user's key; of several processes that do so at once, one wins."""
    path = _key_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with private_draft(path, secrets.token_bytes(_KEY_BYTES)) as draft:
        try:
            # Not renamed: a key that another process made meanwhile stays.
            path.hardlink_to(draft)
        except OSError:
            # One that somebody else may know does not, nor is there a link on every file system.
            if _stored_key() is None:
                draft.replace(path)
