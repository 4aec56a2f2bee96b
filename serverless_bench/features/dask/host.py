"""The process with Dask's client, and with the cluster if one is started, for ``executor``.

Driver and host exchange JSON lines, and the host exits when its standard input is closed::

    driver:  {"scheduler": null, "slots": 8, "security": {}}
    host:    {"cluster": {"workers": [{"about": "JSON of a worker", ...}], "scheduler": ...}}
    driver:  {"probe": {"tls://...": "..."}, "rehearsal": "..."}     an event by worker
    host:    {"probed": {"tls://...": "..."}}          an answer by worker
    driver:  {"submit": [...], "rehearsal": "..."}     repeated for each batch
    host:    {"submitted": 100}, or {"problem": "..."} if the cluster is gone
    host:    {"refused": {"index": 3, ...}}            when an event was not run
    host:    {"finished": 1}                           when a task has ended in any way

A cluster that existed before is not trusted: this process then has no credentials, loads no pickle
that refers to code, and treats data from workers as text. Results of tasks are never fetched.
"""

import json
import logging
import os
import pickle
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TypeVar

import dask.config

from serverless_bench.base.clock import sleep, wall_ns
from serverless_bench.base.errors import ExecutorError, one_line
from serverless_bench.features.dask.worker import answer_probe, describe, run_event
from serverless_bench.features.remote.host_process import (
    Driver,
    describe_error,
    pickled_error,
    pickled_texts,
)

T = TypeVar("T")
_CONNECT_S: Final = 15.0
_END_S: Final = 20.0
"""Time limit for stopping a cluster; after that its workers exit when they lose the connection."""
_DESCRIBED_AT_ONCE: Final = 8
"""A small number, because the precision of a worker's clock offset depends on its response time."""
_PROBED_AT_ONCE: Final = 64
_ANSWER_S: Final = 60.0
_LONGEST: Final = 300
"""Maximum length of an error in characters."""
_LONGEST_ANSWER: Final = 200_000
"""Maximum length of a worker's description in characters; the probe lists every source file."""
_PACKAGE: Final = "serverless-bench"
_GRAPH: Final = "deserialization of the task graph"
"""In the error of a scheduler that lacks a package, or has another version of it."""
_DIED: Final = "KilledWorker"
"""In the error of a task after the death of the worker: the function may have begun."""
_SETTINGS: Final = {
    # Functions of a lost worker are lost. A retry would only find their claims, at a cost.
    "distributed.scheduler.allowed-failures": 0,
    # The profiler would sample every thread a hundred times a second, but they only wait.
    "distributed.worker.profile.enabled": False,
}


def main() -> None:
    """Serve a driver."""
    driver = Driver()
    threading.Thread(target=_end_late, args=(driver,), daemon=True).start()
    # The driver summarizes Dask's long messages in a line.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    try:
        with _cluster(driver.receive()) as client:
            _serve(driver, client)
    except Exception as exc:  # noqa: BLE001 - whatever Dask raises is the answer
        driver.fail(exc)
        # Dask's client would wait for half a minute for a connection that was never made.
        os._exit(1)


def _end_late(driver: Driver) -> None:
    """Exit the process even while it waits for a hanging worker."""
    driver.gone.wait()
    sleep(_END_S)
    os._exit(1)


def _serve(driver: Driver, client: Any) -> None:
    """Describe the cluster, and execute the orders of the driver."""
    cluster = {"workers": _describe(client), "scheduler": client.scheduler.address}
    driver.send(cluster={**cluster, "distributed": version("distributed")})
    tasks = _Tasks(driver, client)
    while order := driver.receive():
        rehearsal = order["rehearsal"]
        if "probe" in order:
            calls = {
                address: partial(_call, client, answer_probe, address, event, rehearsal)
                for address, event in order["probe"].items()
            }
            driver.send(probed=_of_each(calls, _PROBED_AT_ONCE))
        elif client.status != "running":
            driver.send(problem=f"its scheduler {client.scheduler.address} does not answer")
        else:
            tasks.submit(order["submit"], rehearsal)
            driver.send(submitted=len(order["submit"]))


class _Tasks:
    """Unfinished tasks; their ends are reported to the driver."""

    def __init__(self, driver: Driver, client: Any) -> None:
        self._driver = driver
        self._client = client
        self._futures: dict[str, Any] = {}
        """Dask cancels a task without a reference to its future."""
        self._events: dict[str, str] = {}
        """Event of each unfinished task."""
        self._topic = f"sbench-{secrets.token_hex(16)}"
        client.subscribe_topic(self._topic, self._on_refused)

    def submit(self, events: Sequence[str], rehearsal: str) -> None:
        """Submit a task for each event."""
        futures = self._client.map(
            run_event,
            events,
            rehearsal=rehearsal,
            topic=self._topic,
            key=[f"sbench-{secrets.token_hex(16)}" for _ in events],
            pure=False,
            retries=0,
        )
        self._futures |= {future.key: future for future in futures}
        self._events |= {future.key: event for future, event in zip(futures, events, strict=True)}
        for future in futures:
            future.add_done_callback(self._on_finished)

    def _on_finished(self, future: Any) -> None:
        self._futures.pop(future.key, None)
        event = self._events.pop(future.key, None)
        if event is not None and future.status == "error":
            # The error of the scheduler or the worker; that of a function is in its record.
            error = future._state.exception  # noqa: SLF001 - `exception` would wait
            cause = str(error) if isinstance(error, ExecutorError) else describe_error(error)
            if _DIED not in cause:
                spec = json.loads(event)
                about = {"cause": f"Dask could not run it: {cause}", "permanent": _GRAPH in cause}
                self._driver.send(
                    refused={"index": spec["index"], "launch": spec["launch"], **about}
                )
        self._driver.send(finished=1)

    def _on_refused(self, event: object) -> None:
        """Forward the report of a worker, which is untrusted input."""
        match event:
            case (_, {"index": int(index), "launch": int(launch), "refused": str(cause), **rest}):
                about = {"cause": one_line(cause), "permanent": rest.get("permanent") is True}
                self._driver.send(refused={"index": index, "launch": launch, **about})
            case _:
                pass


def _describe(client: Any) -> list[dict[str, Any]]:
    """Return the description of each worker, with bounds of its clock."""
    threads = client.nthreads()
    if not threads:
        raise ExecutorError(
            f"the cluster of {client.scheduler.address} has no workers",
            hint="start some: dask worker ADDRESS, or cluster.scale(N) of an adaptive one",
        )
    _check_scheduler(client)
    calls = {address: partial(_ask, client, address) for address in threads}
    described = _of_each(calls, _DESCRIBED_AT_ONCE)
    return [
        {**about, "address": address, "slots": threads[address]}
        for address, about in described.items()
    ]


def _check_scheduler(client: Any) -> None:
    """Reject a scheduler with other versions than here: it loads the functions of tasks.

    Raises
    ------
    ExecutorError
        If it has another version of Dask or of this package, or lacks it.
    """
    answer = client.sync(client.scheduler.versions, packages=[_PACKAGE])
    packages = answer.get("packages", {}) if isinstance(answer, dict) else {}
    for name in ("distributed", _PACKAGE):
        here, there = _version(name), one_line(str(packages.get(name)))[:_LONGEST]
        if there != str(here):
            has = f"has no {name}" if there == "None" else f"has {name} {there}"
            raise ExecutorError(
                f"the scheduler {client.scheduler.address} {has}, here is {here}",
                hint="install the same serverless-bench[dask] there, and start it again",
            )


def _version(name: str) -> str | None:
    """Return the version of an installed package, or None like Dask does."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _of_each(calls: Mapping[str, Callable[[], T]], concurrency: int) -> dict[str, T]:
    """Return the answer of each worker."""
    pool = ThreadPoolExecutor(concurrency)
    futures = {address: pool.submit(call) for address, call in calls.items()}
    pool.shutdown(wait=False)
    answers = {}
    for address, answer in futures.items():
        try:
            answers[address] = answer.result(timeout=_ANSWER_S)
        except TimeoutError:
            raise ExecutorError(
                f"Dask worker {address} does not answer", hint="start it again, or end it"
            ) from None
    return answers


def _ask(client: Any, address: str) -> dict[str, Any]:
    about = _call(client, describe, address)
    # Repeated over the open connection: a shorter response time gives tighter bounds.
    sent_ns = wall_ns()
    worker_ns = int(_call(client, wall_ns, address))
    received_ns = wall_ns()
    return {
        "about": about,
        "clock_low_ns": worker_ns - received_ns,
        "clock_high_ns": worker_ns - sent_ns,
    }


def _call(
    client: Any,
    function: Callable[..., object],
    address: str,
    *arguments: str,
) -> str:
    """Return the text or number returned by a function on a worker, without using a slot.

    ``client.run`` would unpickle the result and exceptions of the function.
    """
    try:
        answers = client.sync(
            client.scheduler.broadcast,
            msg={"op": "run", "function": pickle.dumps(function), "args": pickle.dumps(arguments)},
            workers=[address],
            serializers=["msgpack"],
            on_error="return_pickle",
        )
    except (TypeError, pickle.UnpicklingError) as exc:
        answers = {address: {"exception_text": describe_error(exc)}}
    match answers.get(address):
        case {"status": "OK", "result": str() | int() as result}:
            return str(result)[:_LONGEST_ANSWER]
        case {"exception_text": str(text)}:
            problem = text
        case bytes(error):
            problem = pickled_error(error)
        case _:
            problem = "it sent an invalid answer"
    raise ExecutorError(
        f"Dask worker {address} cannot run this sbench: {one_line(problem)[:_LONGEST]}",
        hint="install the same serverless-bench[dask] there, and start it again",
    )


@contextmanager
def _cluster(order: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a client of the existing cluster, or of one that stops at the end of the block."""
    scratch = tempfile.mkdtemp(prefix="sbench-dask-")
    dask.config.set({**_SETTINGS, "temporary-directory": scratch})
    # Dask loads its configuration at import.
    from distributed import Client
    from distributed.security import Security

    with ExitStack() as ending:
        ending.callback(shutil.rmtree, scratch, ignore_errors=True)
        if order["scheduler"] is not None:
            where, security = order["scheduler"], Security(**order["security"])
            _check_name(where)
            _check_certificate(where, security)
            _distrust()
        else:
            from serverless_bench.features.dask.cluster import started

            # Other users of this machine can reach its port, and a scheduler runs any code it
            # receives.
            security = Security.temporary()
            where = ending.enter_context(started(order["slots"], security, scratch))
        client = Client(where, security=security, timeout=_CONNECT_S, set_as_default=False)
        ending.callback(_close, client)
        yield client


def _close(client: Any) -> None:
    # It raises the error of an unreadable message.
    with suppress(Exception):
        client.close()


def _distrust() -> None:
    """Prevent data of a cluster from running code in this process or controlling the terminal."""
    from distributed.protocol.serialize import (
        dask_dumps,
        pickle_dumps,
        register_serialization_family,
    )

    def refuse(event: str, _: object) -> None:
        if event == "pickle.find_class":
            raise pickle.UnpicklingError("a pickle of the cluster names code")

    # A pickle runs only code that it names, and Python reports each name (PEP 578).
    sys.addaudithook(refuse)
    dask.config.set({"distributed.scheduler.allowed-imports": []})
    # Results and exceptions of tasks arrive without a request. Rejecting them would close the
    # connection, so only the texts in them are read.
    for family, dumps in (("dask", dask_dumps), ("pickle", pickle_dumps)):
        register_serialization_family(family, dumps, _error_of)
    # Dask prints messages that workers send.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())


def _error_of(_header: object, frames: Sequence[Any]) -> Exception | None:
    """Return an exception with the texts of a pickled one, which is not loaded, or None."""
    data = b"".join(map(bytes, frames[:2]))[:_LONGEST_ANSWER]
    texts = pickled_texts(data)
    is_error = len(texts) > 1 and "xception" in texts[1]
    return ExecutorError(pickled_error(data)) if is_error else None


def _check_name(address: str) -> None:
    """Reject an address that this machine cannot resolve; Dask would retry for a long time."""
    name = address.partition("://")[2].rpartition(":")[0].strip("[]")
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        raise ExecutorError(
            f"{name} cannot be resolved here; names of a Kubernetes service resolve only"
            " inside its cluster",
            hint="kubectl port-forward service/NAME 8786, and `scheduler` tcp://localhost:8786;"
            " or run sbench in the cluster",
        ) from None


def _check_certificate(address: str, security: Any) -> None:
    """Reject a missing certificate if the address requires one."""
    if address.startswith("tls:") and not security.get_connection_args("client")["ssl_context"]:
        raise ExecutorError(
            f"{address} requires a certificate, and Dask's settings contain none",
            hint="distributed.comm.tls in ~/.config/dask: ca-file, client.cert, client.key; or in"
            " Python dask_scheduler(cluster)",
        )


if __name__ == "__main__":
    main()
