"""A private Dask cluster on this machine.

It cannot be reached from other machines. All servers listen only on the loopback device, without a
dashboard, and require the certificate that was created for this cluster.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from distributed import Nanny, Scheduler, SpecCluster, Worker
from distributed.security import Security

from serverless_bench.base.process import cpus

_SLOTS_PER_WORKER: Final = 4
"""Local value. Its threads only wait, but functions die with their worker."""


class QuietScheduler(Scheduler):
    """Dask's scheduler without its web server, which does not check certificates."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Do not start the server."""


class QuietWorker(Worker):
    """Dask's worker without its web server."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Do not start the server."""


@contextmanager
def started(slots: int, security: Security, scratch: str) -> Iterator[SpecCluster]:
    """Yield a cluster that stops at the end of the block.

    Parameters
    ----------
    slots
        Concurrent tasks.
    security
        Certificate for this cluster only.
    scratch
        Directory for the files of Dask.
    """
    number = min(-(-slots // _SLOTS_PER_WORKER), cpus())
    where = {"host": "127.0.0.1", "protocol": "tls://", "security": security}
    options = {
        **where,
        "worker_class": QuietWorker,
        "local_directory": scratch,
        # Functions use memory of other processes, so Dask cannot limit it.
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
