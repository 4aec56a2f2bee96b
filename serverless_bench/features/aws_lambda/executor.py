"""Run functions on AWS Lambda, or on any server with its Invoke API.

Events are sent at the rate at which Lambda creates environments, and no more at once than the
account's concurrency: events in Lambda's queue are invisible. An event that was accepted twice runs
once, because the launch is claimed.
"""

import json
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from itertools import count
from typing import Any, ClassVar, Final

from botocore import exceptions as boto

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import ExecutorError, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.aws_errors import words_of
from serverless_bench.executors.base import ExecutorInfo, NotReadyError, Readiness, RunProgress
from serverless_bench.features.aws.account import ConcurrencyLimits, unqualified
from serverless_bench.features.aws.event_rate import MOST_UNDER_WAY, events_under_way
from serverless_bench.features.aws.options import FunctionOptions, region_of_functions
from serverless_bench.features.aws.stack.template import check_memory
from serverless_bench.features.aws.token_bucket import TokenBucket
from serverless_bench.features.aws_lambda.client import LambdaClient
from serverless_bench.features.aws_lambda.probe import ANSWER_S, ask, check_functions
from serverless_bench.features.remote.executor import LOCATE, RemoteExecutor
from serverless_bench.features.remote.launcher import Launcher
from serverless_bench.features.remote.options import RemoteOptions
from serverless_bench.features.remote.probe import PROBES_AT_ONCE, probe_spec
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import Outcome

BURST: Final = 1000
PER_S: Final = 100.0
"""New environments that a function gets at once, and per second after that (AWS Lambda developer
guide, "Lambda scaling behavior": 1,000 every 10 seconds, refilled continuously, without
accumulation)."""
_TIMEOUT_S: Final = 120.0
_LEAST_EVENT_AGE_S: Final = 60
"""Minimum of MaximumEventAgeInSeconds (AWS Lambda API reference)."""


def read_limits(
    client: Any,
    functions: Sequence[str],
    asked: int,
    progress: RunProgress,
) -> ConcurrencyLimits:
    """Return the limits for the functions of a job; unreadable ones are noted.

    Raises
    ------
    ExecutorError
        If no function may run.
    """
    unknown = "the concurrency quota is unknown ({}); 1,000 assumed"
    account = _answer(progress, unknown, client.get_account_settings)
    reserved: dict[str, int] = {}
    round_trip_s = math.inf
    for name in functions:
        # Lambda accepts this request only without a version.
        about = {"FunctionName": unqualified(name)}
        unknown = f"what is reserved for {name} is unknown ({{}})"
        # The connection is open: the time consists of a round trip and Lambda's processing.
        start_ns = monotonic_ns()
        answer = _answer(progress, unknown, client.get_function_concurrency, **about)
        round_trip_s = min(round_trip_s, (monotonic_ns() - start_ns) / NS_PER_S)
        if (number := answer.get("ReservedConcurrentExecutions")) is not None:
            reserved[name] = int(number)
    limits = ConcurrencyLimits(
        asked=asked,
        quota=account.get("AccountLimit", {}).get("UnreservedConcurrentExecutions"),
        reserved=reserved,
        functions=len(functions),
        round_trip_s=round_trip_s,
    )
    if limits.effective < 1:
        raise ExecutorError("the quota allows no functions", hint="raise the reserved concurrency")
    return limits


def _compare_event_age(
    client: Any,
    job: JobSpec,
    progress: RunProgress,
) -> None:
    """Note functions if Lambda drops their events before the driver's timeout."""
    # The timeout of most jobs does not exceed Lambda's minimum age.
    start_s, names = (
        RemoteOptions.from_work(job).start_timeout,
        FunctionOptions.from_work(job).function,
    )
    for name in names if start_s > _LEAST_EVENT_AGE_S else ():
        with suppress(boto.BotoCoreError, boto.ClientError, KeyError):
            rules = client.get_function_event_invoke_config(FunctionName=name)
            if (age_s := rules["MaximumEventAgeInSeconds"]) < start_s:
                progress.note(
                    f"Lambda drops events of {name} after {age_s} s, before the timeout of"
                    f" {start_s:g} s: raise MaximumEventAge, or lower `start_timeout`"
                )


def _answer(
    progress: RunProgress, unknown: str, call: Callable[..., Mapping[str, Any]], **about: str
) -> Mapping[str, Any]:
    """Return the response of AWS; on an error, add a note and return an empty one."""
    try:
        return call(**about)
    except (boto.BotoCoreError, boto.ClientError) as exc:
        progress.note(unknown.format(words_of(exc)))
        return {}


class LambdaExecutor(RemoteExecutor):
    """Invokes deployed functions, and reads the results below the control prefix.

    Parameters
    ----------
    job
        Must have ``functions`` and ``control``; its ``concurrency`` is the maximum number of
        concurrent functions, limited by the account's quota.
    """

    info: ClassVar = ExecutorInfo(
        remote=True,
        locate=LOCATE,
        invokes=True,
        billed=True,
        settings=frozenset(
            {"stack", "function", "function_region", "memory", "arch", "probe"}
            | {"control_prefix", "progress_objects"}
        ),
        try_out="serverless_bench.features.aws_lambda.probe:answers",
    )

    def __init__(self, job: JobSpec) -> None:
        check_memory(FunctionOptions.from_work(job).memory)
        super().__init__(job)
        self._limits: ConcurrencyLimits | None = None
        """Result of ``prepare``; None in a driver that resumes a run."""

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        job = self._checked()
        client = LambdaClient(
            region_of_functions(job),
            progress,
            connections=PROBES_AT_ONCE,
            answer_s=ANSWER_S,
            patient=False,
        )
        options = FunctionOptions.from_work(job)
        with closing(client):
            self._limits = limits = read_limits(
                client.api, options.function, job.max_concurrency, progress
            )
            _compare_event_age(client.api, job, progress)
            functions, remaining = (
                ask(client, options.function, probe_spec(job, run_id, keys))
                if options.probe
                else ((), ())
            )
        ready = Readiness(
            concurrency=limits.effective,
            limits={**asdict(limits), "effective": limits.effective},
            probe={"functions": [probed.to_json() for probed in functions]} if functions else None,
            left=remaining,
        )
        try:
            check_functions(
                functions,
                job.workload,
                memory_mib=options.memory,
                architecture=options.arch,
            )
        except ExecutorError as exc:
            raise NotReadyError(exc, ready) from exc
        reason = f"the quota allows {limits.effective} concurrent functions"
        self.note_batches(progress, limits.effective, reason)
        return ready

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        launcher = _Invoker(self._checked(), progress, self._limits)
        return self.run_with(launcher, invocations, progress)

    def _checked(self) -> JobSpec:
        if not FunctionOptions.from_work(self.job).function:
            raise UsageError(
                "`executor` lambda needs the name of a function",
                hint="set `stack` NAME for a stack of `sam deploy`, or `function` NAME;"
                " `sbench lambda-host` runs one here",
            )
        return self.job


class _Invoker(Launcher):
    """Sends events."""

    def __init__(
        self, job: JobSpec, progress: RunProgress, limits: ConcurrencyLimits | None
    ) -> None:
        self._job = job
        self._client = LambdaClient(region_of_functions(job), progress, connections=MOST_UNDER_WAY)
        self._turn = count()
        names = FunctionOptions.from_work(job).function
        if limits is None:
            limits = read_limits(self._client.api, names, job.max_concurrency, progress)
        super().__init__(limits.effective)
        self.threads = events_under_way(limits.round_trip_s)
        self._bucket = TokenBucket(PER_S * len(names), BURST * len(names), monotonic_ns())

    def admit(self, wanted: int, in_flight: int) -> int:
        now_ns = monotonic_ns()
        number = max(0, min(super().admit(wanted, in_flight), self._bucket.available(now_ns)))
        self._bucket.take(now_ns, number)
        return number

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        functions = FunctionOptions.from_work(self._job).function

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
