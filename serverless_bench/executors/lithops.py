"""Run functions with Lithops, on whatever backend its configuration names.

Lithops itself runs in a process of its own (``lithops_host``): its threads, alarms, exit
hooks and 80 MiB of imports stay out of the driver, and when the driver dies the host
takes Lithops' local processes with it. Vendor words stop in these two files.
"""

import json
import selectors
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from typing import IO, Any, Final, Self

from serverless_bench.clock import EpochClock
from serverless_bench.errors import ExecutorError, PluginError
from serverless_bench.executors.base import GRACE_S, Live
from serverless_bench.record import InvocationRecord, Lost, Outcome
from serverless_bench.spec import InvocationSpec, JobSpec
from serverless_bench.units import NS_PER_S

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

    def map(
        self, invocations: Iterable[InvocationSpec], live: Live
    ) -> Generator[Outcome, None, None]:
        """See ``Executor``."""
        job = self._job
        waiting = {spec.index: spec for spec in invocations}
        patience_s = job.deadline_s + 2 * GRACE_S
        order = {
            "concurrency": min(job.concurrency, job.invocations),
            "timeout_s": round(job.deadline_s + GRACE_S),
            "invocations": [asdict(spec) for spec in waiting.values()],
        }
        clock = EpochClock()
        submitted_ns = clock.now_ns()
        heard_ns = submitted_ns + round(_DEPLOY_S * NS_PER_S)
        with _Host(order) as host:
            for told in host.lines():
                now_ns = clock.now_ns()
                if told is None:
                    if now_ns - heard_ns > patience_s * NS_PER_S:
                        break
                    continue
                heard_ns = now_ns
                live.started = max(live.started, told.get("started", 0))
                submitted_ns = told.get("submitted_ns", submitted_ns)
                if "index" in told:
                    spec = waiting.pop(told["index"])
                    yield Outcome(
                        submitted_ns=submitted_ns,
                        collected_ns=now_ns,
                        result=_result(told, spec),
                    )
                if not waiting:
                    return
            problem = host.problem
        if len(waiting) == job.invocations and problem:
            raise ExecutorError(f"Lithops could not start: {problem}")
        for spec in waiting.values():
            cause = problem or f"no answer from Lithops for {patience_s:g} s"
            lost = Lost(index=spec.index, attempt=spec.attempt, cause=cause)
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
        self._send(json.dumps(order).encode() + b"\n")
        self.problem = ""
        """Why the host ended before its time; empty as long as it did not."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def lines(self) -> Iterator[dict[str, Any] | None]:
        """Yield what the host says, and None whenever it was silent for a second."""
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
                    told = json.loads(line)
                    self.problem = told.get("problem", self.problem)
                    yield told
        self.problem = self.problem or f"its host process ended with {self._process.wait()}"

    def _send(self, line: bytes) -> None:
        pipe = _there(self._process.stdin)
        try:
            pipe.write(line)
            pipe.flush()
        except BrokenPipeError:
            # It has died; `lines` says so.
            return


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ExecutorError("the Lithops host has no pipes")
    return pipe


def _result(told: dict[str, Any], spec: InvocationSpec) -> InvocationRecord | Lost:
    cause = told.get("lost")
    if cause is None:
        try:
            return InvocationRecord.from_json(told["record"])
        except (ValueError, TypeError, KeyError) as exc:
            cause = f"unreadable record: {type(exc).__name__}: {exc}"
    return Lost(index=spec.index, attempt=spec.attempt, cause=cause)
