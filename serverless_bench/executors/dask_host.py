"""The process that has Dask's client, and the cluster if one is started, for ``executors.dask``.

Driver and host talk in JSON lines, and the host ends when its standard input does::

    driver:  {"scheduler": null, "ssh_hosts": [], "slots": 8}
    host:    {"workers": [...], "scheduler": "tls://...", "distributed": "2026.8.0"}
    driver:  {"submit": [...], "rehearsal": "..."}     as often as there is more
    host:    {"submitted": 100}, or {"problem": "..."} if the cluster has gone
    host:    {"finished": 1}                           when a task is over, however it ended

What a task returned is never fetched: it would be a pickle, and the record is in the store.
"""

import json
import logging
import os
import secrets
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from queue import SimpleQueue
from typing import Any, Final, NoReturn

import dask.config

from serverless_bench.clock import wall_ns
from serverless_bench.errors import ExecutorError, SbenchError, one_line
from serverless_bench.executors.dask_worker import describe, end_idle, run_event

_CONNECT_S: Final = 15.0
_END_S: Final = 20.0
"""A cluster that does not end in this time is left: its workers end when they miss us."""
_TELL_S: Final = 2.0
_ASKED_AT_ONCE: Final = 8
_ANSWER_S: Final = 60.0
_LONGEST: Final = 300
"""Characters of an error."""
_SETTINGS: Final = {
    # What a lost worker ran is lost. Its claim would say so anyway, at a cost.
    "distributed.scheduler.allowed-failures": 0,
    # It would look at every thread a hundred times a second: they only wait.
    "distributed.worker.profile.enabled": False,
}


def main() -> None:
    """Serve one driver."""
    # Whatever a library prints is not for the driver.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Dask says at length what the driver says in a line.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    driver = _Driver(out)
    try:
        with _cluster(driver.receive()) as client:
            _serve(driver, client)
    except SbenchError as exc:
        _fail(driver, str(exc), exc.hint)
    except Exception as exc:  # noqa: BLE001 - whatever Dask raises is the answer
        _fail(driver, _told(exc), "")


class _Driver:
    """What the driver says, and what it is told; threads may tell it."""

    def __init__(self, out: Any) -> None:  # noqa: ANN401 - a text stream
        self._out = out
        self._lock = threading.Lock()
        self._orders: SimpleQueue[dict[str, Any]] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def receive(self) -> dict[str, Any]:
        """Return what the driver wants next; nothing when it is gone."""
        return self._orders.get()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._orders.put(json.loads(line))
        self._orders.put({})
        # Wherever this process is: it may wait for a worker that hangs.
        timer = threading.Timer(_END_S, os._exit, [1])
        timer.daemon = True
        timer.start()

    def send(self, **message: Any) -> None:  # noqa: ANN401 - JSON
        """Say something; the driver may be gone, and then nobody reads it."""
        with self._lock, suppress(OSError):
            self._out.write(json.dumps(message) + "\n")
            self._out.flush()


def _serve(driver: _Driver, client: Any) -> None:  # noqa: ANN401 - Dask's own
    """Describe the cluster, and submit what the driver wants."""
    driver.send(
        workers=_describe(client),
        scheduler=client.scheduler.address,
        distributed=version("distributed"),
    )
    # A future that nobody holds is a task that is cancelled.
    futures: dict[str, Any] = {}

    def finished(future: Any) -> None:  # noqa: ANN401 - Dask's own
        futures.pop(future.key, None)
        driver.send(finished=1)

    rehearsal = ""
    while order := driver.receive():
        if client.status != "running":
            driver.send(problem=f"its scheduler {client.scheduler.address} does not answer")
            continue
        events, rehearsal = order["submit"], order["rehearsal"]
        made = client.map(
            run_event,
            events,
            rehearsal=rehearsal,
            key=[f"sbench-{secrets.token_hex(16)}" for _ in events],
            pure=False,
            retries=0,
        )
        futures |= {future.key: future for future in made}
        for future in made:
            future.add_done_callback(finished)
        driver.send(submitted=len(events))
    if rehearsal and client.status == "running":
        # A worker that hangs is not waited for.
        ending = threading.Thread(target=client.run, args=(end_idle, rehearsal), daemon=True)
        ending.start()
        ending.join(_TELL_S)


def _describe(client: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - Dask's own
    """Return what each worker says of itself, and bounds of its clock."""
    threads = client.nthreads()
    if not threads:
        raise ExecutorError(
            f"the cluster of {client.scheduler.address} has no workers",
            hint="start some: dask worker ADDRESS",
        )
    pool = ThreadPoolExecutor(_ASKED_AT_ONCE)
    asked = {address: pool.submit(_ask, client, address) for address in threads}
    pool.shutdown(wait=False)
    found = []
    for address, answer in asked.items():
        try:
            about = answer.result(timeout=_ANSWER_S)
        except TimeoutError:
            raise ExecutorError(
                f"Dask worker {address} does not answer", hint="start it again, or end it"
            ) from None
        found.append({**about, "address": address, "slots": threads[address]})
    return found


def _ask(client: Any, address: str) -> dict[str, Any]:  # noqa: ANN401 - Dask's own
    about = client.run(describe, workers=[address], on_error="return")[address]
    if isinstance(about, BaseException):
        raise ExecutorError(
            f"Dask worker {address} cannot run this sbench: {_told(about)}",
            hint="install the same serverless-bench[dask] there, and start it again",
        )
    # Once more, over a connection that is open now: the shorter, the closer its clock.
    asked_ns = wall_ns()
    told_ns = client.run(wall_ns, workers=[address])[address]
    answered_ns = wall_ns()
    return {**about, "clock_low_ns": told_ns - answered_ns, "clock_high_ns": told_ns - asked_ns}


@contextmanager
def _cluster(order: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a client of the cluster that is there, or of one that ends with the block."""
    scratch = tempfile.mkdtemp(prefix="sbench-dask-")
    dask.config.set({**_SETTINGS, "temporary-directory": scratch})
    # It reads its configuration when it is imported.
    from distributed import Client  # noqa: PLC0415
    from distributed.security import Security  # noqa: PLC0415

    with ExitStack() as ending:
        ending.callback(shutil.rmtree, scratch, ignore_errors=True)
        if order["scheduler"] is not None:
            where, security = order["scheduler"], Security()
            _check_certificate(where, security)
        else:
            from serverless_bench.executors.dask_cluster import started  # noqa: PLC0415

            # Others on this machine can reach a port of it, and who reaches a scheduler runs code.
            security = Security.temporary()
            where = ending.enter_context(
                started(order["ssh_hosts"], order["slots"], security, scratch)
            )
        client = Client(where, security=security, timeout=_CONNECT_S, set_as_default=False)
        ending.callback(client.close)
        yield client


def _check_certificate(address: str, security: Any) -> None:  # noqa: ANN401 - Dask's own
    """Refuse to go without a certificate where one is wanted."""
    if address.startswith("tls:") and not security.get_connection_args("client")["ssl_context"]:
        raise ExecutorError(
            f"{address} wants a certificate, and Dask's settings name none",
            hint="distributed.comm.tls in ~/.config/dask: ca-file, client.cert, client.key",
        )


def _fail(driver: _Driver, problem: str, hint: str) -> NoReturn:
    driver.send(problem=problem, hint=hint)
    # Dask's client would wait for half a minute for what it never had.
    os._exit(1)


def _told(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")[:_LONGEST]


if __name__ == "__main__":
    main()
