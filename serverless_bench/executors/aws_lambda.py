"""Run functions on AWS Lambda, or on anything that answers its Invoke API.

Events go out at the rate at which Lambda makes environments, and no more at once than the
account may have alive: an event that waits in Lambda's queue is one that nobody can see.
What was accepted twice runs once, because the launch is claimed.
"""

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import count
from typing import Any, ClassVar, Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import ExecutorError, UsageError
from serverless_bench.executors.aws_lambda_client import LambdaClient
from serverless_bench.executors.aws_lambda_limits import read_limits
from serverless_bench.executors.aws_lambda_probe import ANSWER_S, ask, check_functions
from serverless_bench.executors.base import ExecutorInfo, NotReadyError, Readiness, RunProgress
from serverless_bench.executors.remote.executor import RemoteExecutor
from serverless_bench.executors.remote.probing import PROBES_AT_ONCE, probe_spec
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import Outcome
from serverless_bench.token_bucket import TokenBucket

BURST: Final = 1000
PER_S: Final = 100.0
"""New environments that one function gets at once, and per second after that (AWS Lambda
developer guide, "Lambda scaling behavior": 1,000 every 10 seconds, refilled continuously,
what is not used does not add up)."""
_THREADS: Final = 24
_TIMEOUT_S: Final = 120.0


class LambdaExecutor(RemoteExecutor):
    """Invokes deployed functions, and finds what they measured below the control prefix.

    Parameters
    ----------
    job
        Has ``functions`` and ``control``; its ``concurrency`` is the most that is alive at
        once, if the account's quota is not lower.
    """

    info: ClassVar = ExecutorInfo(
        remote=True,
        invokes=True,
        billed=True,
        settings=frozenset(
            {"stack", "function", "function_region", "memory", "arch", "probe", "control_prefix"}
        ),
    )

    def __init__(self, job: JobSpec) -> None:
        super().__init__(job)
        self._most: int | None = None
        """As ``prepare`` found out; None for a driver that goes on with what another began."""

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        job = self._checked()
        asked = min(job.concurrency, job.number)
        client = LambdaClient(
            job.functions_region,
            progress,
            connections=PROBES_AT_ONCE,
            answer_s=ANSWER_S,
            patient=False,
        )
        with closing(client):
            limits = read_limits(client.api, job.function, asked, progress)
            self._most = limits.effective
            said = ask(client, job.function, probe_spec(job, run_id, keys)) if job.probe else None
        described = {**asdict(limits), "effective": limits.effective}
        ready = Readiness(
            concurrency=limits.effective,
            limits=described,
            probe=None if said is None else said.to_json(),
            left=() if said is None else said.left,
        )
        if said is not None:
            try:
                check_functions(
                    said.functions,
                    job.workload,
                    memory_mib=job.memory,
                    architecture=job.arch,
                )
            except ExecutorError as exc:
                raise NotReadyError(exc, ready) from exc
        if limits.effective < asked:
            batches = -(-job.number // limits.effective)
            progress.notes.append(
                f"the quota lets {limits.effective} functions run at once: {batches} batches"
                " instead of one"
            )
        return ready

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        launcher = _Invoker(self._checked(), progress, self._most)
        return self.run_with(launcher, invocations, progress)

    def _checked(self) -> JobSpec:
        if not self.job.function:
            raise UsageError(
                "`executor` lambda needs to know which function to invoke",
                hint="`stack` NAME for what `sam deploy` made; `function` NAME for any other;"
                " `sbench lambda-host` runs one here",
            )
        return self.job


class _Invoker:
    """Sends events; see ``remote.launcher``."""

    batch = 1
    threads = _THREADS

    def __init__(self, job: JobSpec, progress: RunProgress, most: int | None) -> None:
        self._job = job
        self._client = LambdaClient(job.functions_region, progress, connections=_THREADS)
        self._turn = count()
        if most is None:
            asked = min(job.concurrency, job.number)
            most = read_limits(self._client.api, job.function, asked, progress).effective
        self._most = most
        names = len(job.function)
        self._bucket = TokenBucket(PER_S * names, BURST * names, monotonic_ns())

    def admit(self, wanted: int, in_flight: int) -> int:
        now_ns = monotonic_ns()
        number = max(0, min(wanted, self._most - in_flight, self._bucket.available(now_ns)))
        self._bucket.take(now_ns, number)
        return number

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        functions = self._job.function

        def request() -> Mapping[str, Any]:
            (invocation,) = events()
            return {
                "FunctionName": functions[next(self._turn) % len(functions)],
                "InvocationType": "Event",
                "Payload": json.dumps(asdict(invocation)).encode(),
            }

        _, refusals = self._client.invoke(request, timeout_s=_TIMEOUT_S)
        return refusals

    def close(self) -> None:
        self._client.close()
