"""Run functions with Lithops, on whatever backend its configuration names.

Lithops itself runs in a process of its own (``lithops_host``): its threads, alarms, exit
hooks and 80 MiB of imports stay out of the driver, and when the driver dies the host
takes Lithops' local processes with it. Vendor words stop in these two files.
"""

import json
import selectors
import subprocess
import sys
from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from typing import IO, Any, Final, Self
from weakref import finalize

from serverless_bench.clock import EpochClock
from serverless_bench.errors import ExecutorError, PluginError
from serverless_bench.executors.base import GRACE_S, RunProgress
from serverless_bench.executors.remote.map import RemoteMap
from serverless_bench.executors.remote.requested_records import RequestedRecords
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.units import NS_PER_S

_LOCAL: Final = "localhost"
_HOST: Final = "serverless_bench.executors.lithops_host"
_DEPLOY_S: Final = 120.0
"""A first deployment of a Lithops runtime may take this long before anything runs."""


class LithopsExecutor:
    """One Lithops map per job.

    Parameters
    ----------
    job
        Its ``concurrency`` becomes Lithops' worker cap, its ``deadline_s`` the timeout
        of a function; both are set explicitly, because the defaults (1,000 workers, 180
        seconds) end jobs in silence.
    """

    def __init__(self, job: JobSpec) -> None:
        if find_spec("lithops") is None:
            raise PluginError(
                "executor 'lithops' needs 'lithops', which is not installed",
                hint="pip install 'serverless-bench[lithops]'",
            )
        self._job = job
        self._seen = RequestedRecords(job.invocations)
        self._waiting: _Host | None = None
        self._backend = ""

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        with self._host() as host:
            if self._backend == _LOCAL or self._job.control is None:
                yield from self._follow(host, invocations, progress)
            else:
                launcher = _Launcher(host, self._job)
                yield from RemoteMap(self._job, launcher, progress, seen=self._seen).run(
                    invocations
                )

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> Generator[Outcome, None, None]:
        """Recover in the cloud; functions on this machine have died with their driver."""
        self._waiting = self._host()
        # Whether or not there is anything to launch after this, it ends with the executor.
        finalize(self, self._waiting.close)
        if self._backend != _LOCAL and self._job.control is not None:
            remote = RemoteMap(
                self._job, None, progress, since_ns=since_ns, seen=self._seen, known=known
            )
            yield from remote.run(invocations)

    def _host(self) -> "_Host":
        """Return a host that waits for what there is to do; one that did nothing yet is used."""
        if self._waiting is not None:
            host, self._waiting = self._waiting, None
            return host
        job = self._job
        order = {
            "concurrency": min(job.concurrency, job.invocations),
            "timeout_s": round(job.deadline_s + GRACE_S),
            "event_age_s": round(job.start_timeout_s),
        }
        host = _Host(order)
        try:
            self._backend = host.backend()
        except BaseException:
            host.close()
            raise
        return host

    def _follow(
        self, host: "_Host", invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        """Have Lithops run functions on this machine, and take records from its hands."""
        job = self._job
        waiting = {spec.index: spec for spec in invocations}
        timeout_s = job.deadline_s + 2 * GRACE_S
        host.send({"invocations": [asdict(spec) for spec in waiting.values()]})
        clock = EpochClock()
        submitted_ns = clock.now_ns()
        received_ns = submitted_ns + round(_DEPLOY_S * NS_PER_S)
        for message in host.lines():
            now_ns = clock.now_ns()
            if message is None:
                if now_ns - received_ns > timeout_s * NS_PER_S:
                    break
                continue
            received_ns = now_ns
            progress.started = max(progress.started, message.get("started", 0))
            submitted_ns = message.get("submitted_ns", submitted_ns)
            if "index" in message:
                spec = waiting.pop(message["index"])
                yield Outcome(
                    submitted_ns=submitted_ns,
                    collected_ns=now_ns,
                    result=_result(message, spec),
                )
            if not waiting:
                return
        problem = host.problem
        if len(waiting) == job.invocations and problem:
            raise ExecutorError(f"Lithops could not start: {problem}")
        for spec in waiting.values():
            cause = problem or f"no answer from Lithops for {timeout_s:g} s"
            lost = Lost(index=spec.index, launch=spec.launch, cause=cause)
            yield Outcome(submitted_ns=submitted_ns, collected_ns=clock.now_ns(), result=lost)


class _Host:
    """The driver's end of the process that runs Lithops."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", _HOST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines = self._read()
        self.send(order)
        self.problem = ""
        """Why the host ended before its time; empty as long as it did not."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the host, if it has not ended, and wait until it has."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def backend(self) -> str:
        """Return the name of the backend that Lithops is configured for.

        Raises
        ------
        ExecutorError
            If the host cannot use that configuration.
        """
        message = self.await_message("backend", _DEPLOY_S)
        return str(message["backend"])

    def await_message(self, word: str, timeout_s: float) -> dict[str, Any]:
        """Return the next message of the host with ``word`` in it.

        Raises
        ------
        ExecutorError
            If it ends, complains, or is silent for too long.
        """
        silent_s = 0
        for message in self._lines:
            if message is None:
                silent_s += 1
                if silent_s > timeout_s:
                    break
            elif word in message:
                return message
            elif "problem" in message:
                raise ExecutorError(
                    f"Lithops could not start: {message['problem']}", hint=message["hint"]
                )
        problem = self.problem or f"no answer for {timeout_s:g} s"
        raise ExecutorError(f"Lithops could not start: {problem}")

    def lines(self) -> Iterator[dict[str, Any] | None]:
        """Yield the messages of the host, and None whenever it was silent for a second."""
        return self._lines

    def _read(self) -> Iterator[dict[str, Any] | None]:
        out = _there(self._process.stdout)
        unread = b""
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while True:
                if not selector.select(1.0):
                    yield None
                    continue
                data = out.read1()  # type: ignore[attr-defined]
                if not data:
                    break
                *lines, unread = (unread + data).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    self.problem = message.get("problem", self.problem)
                    yield message
        self.problem = self.problem or f"its host process ended with {self._process.wait()}"

    def send(self, order: dict[str, Any]) -> None:
        """Send the host a message."""
        pipe = _there(self._process.stdin)
        try:
            pipe.write(json.dumps(order).encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:
            # It has died; `lines` shows it.
            return


class _Launcher:
    """Hands batches to Lithops; see ``remote.launcher``.

    Lithops is believed about nothing after that: a call that it lost is one that has not
    begun in time.
    """

    batch = 10_000
    threads = 1

    def __init__(self, host: _Host, job: JobSpec) -> None:
        self._host = host
        self._most = min(job.concurrency, job.invocations)

    def room(self, in_flight: int) -> int:
        return self._most - in_flight

    def take(self, count: int) -> None:
        """Count nothing: Lithops has no limit that is known."""

    def launch(self, invocations: Iterable[InvocationSpec]) -> int:
        self._host.send({"launch": [asdict(spec) for spec in invocations]})
        self._host.await_message("launched", _DEPLOY_S)
        return 0

    def close(self) -> None:
        """Nothing to close: the host ends with the executor."""


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ExecutorError("the Lithops host has no pipes")
    return pipe


def _result(message: dict[str, Any], spec: InvocationSpec) -> InvocationRecord | Lost:
    cause = message.get("lost")
    if cause is None:
        try:
            return InvocationRecord.from_json(message["record"])
        except (ValueError, TypeError, KeyError) as exc:
            cause = f"unreadable record: {type(exc).__name__}: {exc}"
    return Lost(index=spec.index, launch=spec.launch, cause=cause)
