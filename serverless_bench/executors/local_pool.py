"""The pool of processes that run functions on this machine: warm, reused, up to 1,000 at once."""

import json
import mmap
import selectors
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import ExecutorError
from serverless_bench.base.fork_server import start_fork_server
from serverless_bench.base.units import NS_PER_S
from serverless_bench.executors.base import (
    RunProgress,
    read_record,
)
from serverless_bench.job.abilities import environment_of
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.worker.board import board_type
from serverless_bench.worker.rehearsal import rehearsal

_ORDERS: Final = 16
_TICK_S: Final = 0.25


@dataclass(slots=True)
class _Worker:
    slot: int
    stream: socket.socket
    pid: int = 0
    task: InvocationSpec | None = None
    submitted_ns: int = 0
    heard_ns: int = 0
    """Time of the last data received, by a clock that stops during suspend; a large record arrives
    in pieces."""
    received: bytearray = field(default_factory=bytearray)
    killed_for: str = ""
    """Reason for which the driver killed it; empty otherwise."""


class WorkerPool:
    """The driver's end of one fork server and its workers."""

    def __init__(
        self,
        job: JobSpec,
        invocations: Iterator[InvocationSpec],
        progress: RunProgress,
        keys: Mapping[str, str],
    ) -> None:
        self._size = job.max_concurrency
        self._invocations = invocations
        self._progress = progress
        self._clock = progress.clock
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, _Worker] = {}
        self._exits: dict[int, str] = {}
        self._unread = b""
        self._failure = ""
        counters = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the pool
        # Not truncate(): a process that writes to a sparse file on a full disk is killed.
        board = board_type()
        counters.write(bytes(board.size_of(self._size)))
        counters.flush()
        self._board = board(mmap.mmap(counters.fileno(), 0))
        # Only this driver can send data to these workers.
        environment = {**keys, **environment_of(job.declared)}
        self._control, self._fork_server = start_fork_server(
            "serverless_bench.executors.local_workers",
            rehearsal(job),
            environment,
            counters.fileno(),
        )
        counters.close()
        self._selector.register(self._control, selectors.EVENT_READ, None)

    def close(self) -> None:
        """Stop the fork server and its workers, and wait until they have exited."""
        for worker in self._workers.values():
            worker.stream.close()
        self._control.close()
        self._fork_server.wait()
        self._selector.close()

    def run(self, timeout_s: float) -> Iterator[Outcome]:
        """Yield an outcome for each invocation."""
        self._progress.begin(self._board)
        for slot in range(self._size):
            if self._progress.stopped:
                return
            self._fork(slot)
            # Limited, because both ends would block if both socket buffers were full.
            yield from self._await_starts(_ORDERS)
        yield from self._await_starts(1)
        if not self._workers:
            raise ExecutorError(
                f"no worker process could be started: {self._failure}",
                hint="lower `concurrency`, or raise the limits that `ulimit -a` shows",
            )
        if self._failure:
            self._progress.note(
                f"{len(self._workers)} of {self._size} workers started: {self._failure}"
            )
        for worker in list(self._workers.values()):
            self._hand_out(worker)
        while any(worker.task for worker in self._workers.values()):
            yield from self._listen()
            self._end_dropped(timeout_s)

    def _await_starts(self, fewer_than: int) -> Iterator[Outcome]:
        while sum(not worker.pid for worker in self._workers.values()) >= fewer_than:
            yield from self._listen()

    def _fork(self, slot: int) -> None:
        driver_end, worker_end = socket.socketpair()
        self._workers[slot] = _Worker(slot=slot, stream=driver_end)
        order = json.dumps({"fork": slot}).encode() + b"\n"
        try:
            socket.send_fds(self._control, [order], [worker_end.fileno()])
        except OSError as exc:
            raise ExecutorError(f"the local worker parent died: {exc}") from exc
        finally:
            worker_end.close()
        self._selector.register(driver_end, selectors.EVENT_READ, self._workers[slot])

    def _hand_out(self, worker: _Worker) -> None:
        worker.task = task = None if self._progress.stopped else next(self._invocations, None)
        if task is None:
            return
        worker.submitted_ns, worker.heard_ns = self._clock.now_ns(), monotonic_ns()
        self._progress.started += 1
        # If the worker is dead, its end of the socket reports that next.
        with suppress(OSError):
            worker.stream.sendall(json.dumps(asdict(task)).encode() + b"\n")

    def _listen(self) -> Iterator[Outcome]:
        for key, _ in self._selector.select(_TICK_S):
            worker: _Worker | None = key.data
            if worker is None:
                # The message may have been read already while handling the exit of another worker.
                self._read_fork_server(socket.MSG_DONTWAIT)
            elif self._workers.get(worker.slot) is worker:
                yield from self._read_worker(worker)

    def _read_fork_server(self, flags: int = 0) -> None:
        try:
            data = self._control.recv(1 << 16, flags)
        except BlockingIOError:
            return
        if not data:
            raise ExecutorError("the local worker parent died", hint="see its error above")
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "error" in message:
                self._failure = message["error"]
                self._drop(self._workers[message["fork"]])
            elif "fork" in message:
                self._workers[message["fork"]].pid = message["pid"]
            else:
                self._exits[message["pid"]] = _describe_exit(message["status"])

    def _read_worker(self, worker: _Worker) -> Iterator[Outcome]:
        try:
            data = worker.stream.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            yield from self._on_worker_exit(worker)
            return
        worker.received += data
        worker.heard_ns = monotonic_ns()
        task = worker.task
        if task is None or not data.endswith(b"\n"):
            return
        line, worker.received = bytes(worker.received), bytearray()
        yield self._outcome(worker, read_record(line, task.index, task.launch))
        self._hand_out(worker)

    def _on_worker_exit(self, worker: _Worker) -> Iterator[Outcome]:
        task, slot = worker.task, worker.slot
        while worker.pid not in self._exits:
            self._read_fork_server()
            if self._workers.get(slot) is not worker:
                return  # it never started, and has been dropped for that
        died = self._exits.pop(worker.pid)
        self._drop(worker)
        if task is None:
            return  # no invocation has been assigned yet, or none remains
        lost = Lost(index=task.index, launch=task.launch, cause=worker.killed_for or died)
        yield self._outcome(worker, lost)
        self._fork(slot)
        while slot in self._workers and not self._workers[slot].pid:
            self._read_fork_server()
        if slot in self._workers:
            self._hand_out(self._workers[slot])

    def _drop(self, worker: _Worker) -> None:
        self._selector.unregister(worker.stream)
        worker.stream.close()
        self._workers.pop(worker.slot, None)

    def _outcome(self, worker: _Worker, result: InvocationRecord | Lost) -> Outcome:
        return Outcome(
            submitted_ns=worker.submitted_ns, collected_ns=self._clock.now_ns(), result=result
        )

    def _end_dropped(self, timeout_s: float) -> None:
        latest_ns = monotonic_ns() - round(timeout_s * NS_PER_S)
        for worker in self._workers.values():
            if worker.task and not worker.killed_for and worker.heard_ns < latest_ns:
                worker.killed_for = f"no answer after {timeout_s:g} s: killed"
                # If the fork server is dead, its end of the socket reports that next.
                with suppress(OSError):
                    self._control.sendall(json.dumps({"kill": worker.pid}).encode() + b"\n")


def _describe_exit(status: int) -> str:
    if status == -signal.SIGKILL:
        return "killed by SIGKILL (by hand, or out of memory)"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"the worker process exited with status {status}"
