"""Azurite: Microsoft's emulator of Azure Storage, a program for Node.

It is installed once, with the versions and hashes of ``package-lock.json``, into the user's cache
directory. To pin another version: change ``package.json`` and run ``npm install
--package-lock-only --omit-lockfile-registry-resolved --ignore-scripts`` here.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import platformdirs
import pytest

from serverless_bench.job.target import StoreProtocol
from tests.stores.servers import Server, free_port, running

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

_PINS: Final = ("package.json", "package-lock.json")
ACCOUNT: Final = "tester"
KEY: Final = b64encode(secrets.token_bytes(64)).decode()
"""Key of this test process; Azurite's default account is public."""
KEYS: Final = {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}


@contextmanager
def azurite(scratch: Path) -> Iterator[Server]:
    """Run Azurite's Blob service on a free port of this machine; it keeps all in memory."""
    home = installed()
    program = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        *("node", str(program), "--silent", "--disableTelemetry", "--inMemoryPersistence"),
        # Both libraries may speak a version of the API that it does not know yet.
        *("--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", url.rpartition(":")[2]),
    ]
    accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with running(command, url, scratch / "azurite.log", accounts):
        server = Server(url, "test", KEYS, StoreProtocol.AZ)
        with container(server) as here:
            here.create_container()
        yield server


@contextmanager
def container(server: Server) -> Iterator["ContainerClient"]:
    """Look into Azurite with Azure's own library."""
    from azure.storage.blob import ContainerClient

    with ContainerClient(
        f"{server.endpoint_url}/{ACCOUNT}",
        server.bucket,
        credential={"account_name": ACCOUNT, "account_key": KEY},
    ) as client:
        yield client


def installed() -> Path:
    """Return the path of Azurite, after installing it if necessary."""
    here = Path(__file__).parent
    pins = b"".join((here / name).read_bytes() for name in _PINS)
    home = platformdirs.user_cache_path("sbench") / (
        "azurite-" + hashlib.blake2b(pins, digest_size=6).hexdigest()
    )
    if (home / "complete").exists():
        return home
    if shutil.which("npm") is None and "CI" not in os.environ:
        pytest.skip("Azurite needs Node and npm, which are not installed")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        # Only one of two concurrent test processes installs it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            for name in _PINS:
                shutil.copy(here / name, home)
            quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
            subprocess.run(["npm", "ci", *quiet], cwd=home, check=True, capture_output=True)
            (home / "complete").touch()
    return home
