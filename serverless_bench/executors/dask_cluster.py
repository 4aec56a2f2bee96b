"""A Dask cluster of our own on this machine.

Nothing of it can be reached from elsewhere. Everything listens on the loopback device alone,
without a dashboard, and answers who has the certificate that was made for this cluster.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from distributed import Nanny, Scheduler, SpecCluster, Worker
from distributed.security import Security

from serverless_bench.process import cpus

_LOOPBACK: Final = "127.0.0.1"
_SLOTS_PER_WORKER: Final = 4
"""Here. Its threads only wait; but one that dies takes its functions with it."""


class QuietScheduler(Scheduler):
    """Dask's scheduler without its web server, which knows no certificates."""

    def start_http_server(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - Dask's own
        """Listen to nobody."""


class QuietWorker(Worker):
    """The same of a worker."""

    def start_http_server(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - Dask's own
        """Listen to nobody."""


@contextmanager
def started(slots: int, security: Security, scratch: str) -> Iterator[SpecCluster]:
    """Yield a cluster that ends with the block.

    Parameters
    ----------
    slots
        Tasks at once.
    security
        For this cluster alone.
    scratch
        Directory for what Dask writes.
    """
    number = min(-(-slots // _SLOTS_PER_WORKER), cpus())
    where = {"host": _LOOPBACK, "protocol": "tls://", "security": security}
    options = {
        **where,
        "worker_class": QuietWorker,
        "local_directory": scratch,
        # What a function takes is not Dask's to limit: it is no memory of its worker.
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
    }
    threads = [slots // number + (worker < slots % number) for worker in range(number)]
    workers = {
        worker: {"cls": Nanny, "options": {**options, "nthreads": count}}
        for worker, count in enumerate(threads)
    }
    scheduler = {"cls": QuietScheduler, "options": where}
    with SpecCluster(workers=workers, scheduler=scheduler, security=security) as cluster:
        yield cluster
