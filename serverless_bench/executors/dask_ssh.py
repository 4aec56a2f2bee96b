"""A Dask worker on a host that ``dask_cluster`` has reached by SSH; it ends with its input."""

import asyncio
import json
import logging
import os
import shutil
import socket
import sys
import tempfile
import threading
from typing import Any

from distributed.security import Security

from serverless_bench.executors.dask_cluster import LOOPBACK, QuietWorker
from serverless_bench.process import cpus


def main() -> None:
    """Say which port is free, hear what to join, and work until the connection ends."""
    with socket.create_server((LOOPBACK, 0)) as held:
        _say(port=held.getsockname()[1])
    order = json.loads(sys.stdin.readline())
    scratch = tempfile.mkdtemp(prefix="sbench-dask-")
    threading.Thread(target=_end_with_input, args=(scratch,), daemon=True).start()
    try:
        asyncio.run(_work(order, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _work(order: dict[str, Any], scratch: str) -> None:
    tls = order["tls"]
    security = Security(
        require_encryption=True,
        tls_ca_file=tls["ca_file"],
        tls_worker_cert=tls["cert"],
        tls_worker_key=tls["key"],
    )
    worker = QuietWorker(
        order["scheduler"],
        nthreads=order["slots"] or cpus(),
        name=order["name"],
        host=LOOPBACK,
        port=order["port"],
        protocol="tls://",
        contact_address=order["contact"],
        security=security,
        local_directory=scratch,
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )
    async with worker:
        _say(joined=1)
        await worker.finished()


def _end_with_input(scratch: str) -> None:
    """End at once when the connection has: nobody is there to run anything for."""
    # Below Python's reader, whose lock would be held when the interpreter ends.
    while os.read(sys.stdin.fileno(), 1):
        pass
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)


def _say(**message: int) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
