"""Series of runs: their directory, and the embedded store between them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serverless_bench.base.errors import ArchiveError


def check_unused(directory: Path) -> None:
    """Check that the directory of a series is new, so that it does not mix two series.

    Raises
    ------
    ArchiveError
        If the directory exists.
    """
    if directory.exists():
        raise ArchiveError(f"{directory} exists already", hint="choose another --name")


@contextmanager
def keep_store(*, needed: bool) -> Iterator[None]:
    """Keep the embedded store running between runs if one of them uses it.

    This takes only a lease: the store's credentials are in the environment only during the runs
    that need them, because other tasks may use a store with different credentials.
    """
    from serverless_bench.stores.embedded import Lease, default_directory

    lease = Lease.take(default_directory()) if needed else None
    try:
        yield
    finally:
        if lease is not None:
            lease.release()
