"""A Dask cluster of our own: its scheduler here, its workers on this machine or on others.

Nothing of it can be reached from elsewhere. Everything listens on the loopback device alone,
without a dashboard, and answers who has the certificate that was made for this cluster; hosts
are joined by what SSH forwards.
"""

import json
import logging
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from distributed import Nanny, Scheduler, SpecCluster, Worker
from distributed.deploy.spec import ProcessInterface
from distributed.security import Security

from serverless_bench.errors import ExecutorError, one_line
from serverless_bench.process import cpus

LOOPBACK: Final = "127.0.0.1"
_SLOTS_PER_WORKER: Final = 4
"""Here. Its threads only wait; but one that dies takes its functions with it."""
_SSH: Final = "serverless_bench.executors.dask_ssh"


class QuietScheduler(Scheduler):
    """Dask's scheduler without its web server, which knows no certificates."""

    def start_http_server(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - Dask's own
        """Listen to nobody."""


class QuietWorker(Worker):
    """The same of a worker."""

    def start_http_server(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - Dask's own
        """Listen to nobody."""


@contextmanager
def started(
    hosts: Sequence[str], slots: int | None, security: Security, scratch: str
) -> Iterator[SpecCluster]:
    """Yield a cluster that ends with the block.

    Parameters
    ----------
    hosts
        Reached by SSH; none for this machine.
    slots
        Tasks at once, on each host; None for one per processor there.
    security
        For this cluster alone.
    scratch
        Directory for what Dask writes.
    """
    if hosts:
        options = {"slots": slots, "security": security}
        workers = {host: {"cls": SshWorker, "options": {**options, "host": host}} for host in hosts}
    else:
        number = min(-(-(slots or 1) // _SLOTS_PER_WORKER), cpus())
        workers = {
            str(one): {
                "cls": Nanny,
                "options": _local((slots or 1), number, one, security, scratch),
            }
            for one in range(number)
        }
    scheduler = {
        "cls": QuietScheduler,
        "options": {"host": LOOPBACK, "protocol": "tls://", "security": security},
    }
    with SpecCluster(workers=workers, scheduler=scheduler, security=security) as cluster:
        yield cluster


def _local(slots: int, number: int, one: int, security: Security, scratch: str) -> dict[str, Any]:
    """Return options of one of a number of workers here, which share the slots."""
    return {
        "worker_class": QuietWorker,
        "nthreads": slots // number + (one < slots % number),
        "host": LOOPBACK,
        "protocol": "tls://",
        "security": security,
        "local_directory": scratch,
        # What a function takes is not Dask's to limit: it is no memory of its worker.
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
    }


class SshWorker(ProcessInterface):
    """A worker on a host that is reached by SSH, as ``~/.ssh/config`` says.

    It connects to the scheduler, and the scheduler to it, through the connection that started
    it, and it ends with that.
    """

    def __init__(
        self,
        scheduler: str,
        *,
        host: str,
        slots: int | None,
        security: Security,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._scheduler, self._host, self._slots = scheduler, host, slots
        self._security, self._name = security, name or host
        self._connection: Any = None

    async def start(self) -> None:
        """Start it, and wait until it has joined the cluster."""
        import asyncssh  # noqa: PLC0415 - only those with hosts need it

        try:
            self._connection = connection = await asyncssh.connect(self._host)
            command = shlex.join([sys.executable, "-P", "-m", _SSH])
            process = await connection.create_process(command)
            free = await _answer(process, "port")
            there = await connection.forward_remote_port(
                LOOPBACK, 0, LOOPBACK, int(self._scheduler.rpartition(":")[2])
            )
            here = await connection.forward_local_port(LOOPBACK, 0, LOOPBACK, free)
            order = {
                "scheduler": f"tls://{LOOPBACK}:{there.get_port()}",
                "port": free,
                "contact": f"tls://{LOOPBACK}:{here.get_port()}",
                "slots": self._slots,
                "name": self._name,
                # On its standard input: nobody there sees it.
                "tls": self._security.get_tls_config_for_role("worker"),
            }
            process.stdin.write(json.dumps(order) + "\n")
            await _answer(process, "joined")
            await process.redirect_stderr(asyncssh.DEVNULL)
        except (OSError, asyncssh.Error) as exc:
            raise ExecutorError(
                one_line(f"no worker on host {self._host}: {str(exc) or type(exc).__name__}"),
                hint="ssh must reach it without a question; ~/.ssh/config has port, user and key",
            ) from exc
        await super().start()

    async def close(self) -> None:
        """End it, with all that it runs."""
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()
        await super().close()


async def _answer(process: Any, word: str) -> int:  # noqa: ANN401 - asyncssh's own
    """Return what the other side says next."""
    while line := await process.stdout.readline():
        # A shell may have greeted before.
        if line.startswith(f'{{"{word}"'):
            return int(json.loads(line)[word])
    said = (await process.stderr.read()).strip().splitlines()
    raise OSError(said[-1] if said else "it said nothing")
