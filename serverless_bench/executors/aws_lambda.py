"""Run functions on AWS Lambda, or on anything that answers its Invoke API.

Events go out at the rate at which Lambda makes environments, and no more at once than the
account may have alive: an event that waits in Lambda's queue is one that nobody can see.
What was accepted twice runs once, because the launch is claimed.
"""

import json
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import Any, ClassVar, Final

from botocore import exceptions as boto

from serverless_bench.aws.account import unqualified
from serverless_bench.aws.cost.forecast import MOST_UNDER_WAY, events_under_way
from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import ExecutorError, UsageError
from serverless_bench.executors.aws_lambda_client import LambdaClient
from serverless_bench.executors.aws_lambda_probe import ANSWER_S, ask, check_functions
from serverless_bench.executors.base import ExecutorInfo, NotReadyError, Readiness, RunProgress
from serverless_bench.executors.remote.executor import RemoteExecutor
from serverless_bench.executors.remote.launcher import Launcher
from serverless_bench.executors.remote.probing import PROBES_AT_ONCE, probe_spec
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import Outcome
from serverless_bench.token_bucket import TokenBucket
from serverless_bench.units import NS_PER_S

BURST: Final = 1000
PER_S: Final = 100.0
"""New environments that one function gets at once, and per second after that (AWS Lambda
developer guide, "Lambda scaling behavior": 1,000 every 10 seconds, refilled continuously,
what is not used does not add up)."""
_QUOTA_UNKNOWN: Final = 1000
"""The quota of an account that never asked for more; new accounts have less."""
_TIMEOUT_S: Final = 120.0
_LEAST_EVENT_AGE_S: Final = 60
"""The least MaximumEventAgeInSeconds (AWS Lambda API reference)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimits:
    """What bounds the functions of a job that are alive at once."""

    asked: int
    quota: int | None
    """What the account has left for functions without a reserve; None if it does not say."""
    reserved: Mapping[str, int] = field(default_factory=dict)
    """By function, for those that have a reserve."""
    functions: int = 1
    """How many share the load, in turns."""
    round_trip_s: float
    """The shortest time in which Lambda's API answered the driver."""

    @property
    def effective(self) -> int:
        """How many may be alive at once; below 1 if none."""
        shares = [number * self.functions for number in self.reserved.values()]
        if unreserved := self.functions - len(self.reserved):
            quota = _QUOTA_UNKNOWN if self.quota is None else self.quota
            shares.append(quota * self.functions // unreserved)
        return min(self.asked, *shares)


def read_limits(
    client: Any,  # noqa: ANN401 - botocore's
    functions: Sequence[str],
    asked: int,
    progress: RunProgress,
) -> ConcurrencyLimits:
    """Return what bounds the functions of a job; what cannot be read is noted.

    Raises
    ------
    ExecutorError
        If none may run.
    """
    unknown = "the concurrency quota is unknown ({}); 1,000 assumed"
    account = _answer(progress, unknown, client.get_account_settings)
    reserved: dict[str, int] = {}
    round_trip_s = math.inf
    for name in functions:
        # A reserve is the function's, not a version's: Lambda refuses to be asked for one.
        about = {"FunctionName": unqualified(name)}
        unknown = f"what is reserved for {name} is unknown ({{}})"
        # The connection is open: that is one round trip, and what Lambda needs to answer.
        began_ns = monotonic_ns()
        answer = _answer(progress, unknown, client.get_function_concurrency, **about)
        round_trip_s = min(round_trip_s, (monotonic_ns() - began_ns) / NS_PER_S)
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
        raise ExecutorError("the quota lets no function run", hint="raise the reserved concurrency")
    return limits


def _compare_event_age(
    client: Any,  # noqa: ANN401 - botocore's
    job: JobSpec,
    progress: RunProgress,
) -> None:
    """Note which functions' events Lambda drops before the driver stops waiting for them."""
    # Most jobs wait no longer than the shortest age that Lambda can be told.
    for name in job.function if job.start_timeout > _LEAST_EVENT_AGE_S else ():
        with suppress(boto.BotoCoreError, boto.ClientError, KeyError):
            rules = client.get_function_event_invoke_config(FunctionName=name)
            if (age_s := rules["MaximumEventAgeInSeconds"]) < job.start_timeout:
                progress.note(
                    f"Lambda drops events of {name} after {age_s} s, and they are waited for"
                    f" {job.start_timeout:g} s: raise MaximumEventAge, or lower `start_timeout`"
                )


def _answer(
    progress: RunProgress, unknown: str, call: Callable[..., Mapping[str, Any]], **about: str
) -> Mapping[str, Any]:
    """Return what AWS says; nothing, with a note on what is unknown then, if it does not."""
    try:
        return call(**about)
    except (boto.BotoCoreError, boto.ClientError) as exc:
        progress.notes.append(unknown.format(exc))
        return {}


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
        try_out="serverless_bench.executors.aws_lambda_probe:answers",
    )

    def __init__(self, job: JobSpec) -> None:
        super().__init__(job)
        self._limits: ConcurrencyLimits | None = None
        """As ``prepare`` found out; None for a driver that goes on with what another began."""

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        job = self._checked()
        client = LambdaClient(
            job.functions_region,
            progress,
            connections=PROBES_AT_ONCE,
            answer_s=ANSWER_S,
            patient=False,
        )
        with closing(client):
            self._limits = limits = read_limits(client.api, job.function, job.at_once, progress)
            _compare_event_age(client.api, job, progress)
            functions, left = (
                ask(client, job.function, probe_spec(job, run_id, keys)) if job.probe else ((), ())
            )
        ready = Readiness(
            concurrency=limits.effective,
            limits={**asdict(limits), "effective": limits.effective},
            probe={"functions": [one.to_json() for one in functions]} if functions else None,
            left=left,
        )
        try:
            check_functions(
                functions,
                job.workload,
                memory_mib=job.memory,
                architecture=job.arch,
            )
        except ExecutorError as exc:
            raise NotReadyError(exc, ready) from exc
        why = f"the quota lets {limits.effective} functions run at once"
        self.note_batches(progress, limits.effective, why)
        return ready

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        launcher = _Invoker(self._checked(), progress, self._limits)
        return self.run_with(launcher, invocations, progress)

    def _checked(self) -> JobSpec:
        if not self.job.function:
            raise UsageError(
                "`executor` lambda needs to know which function to invoke",
                hint="`stack` NAME for what `sam deploy` made; `function` NAME for any other;"
                " `sbench lambda-host` runs one here",
            )
        return self.job


class _Invoker(Launcher):
    """Sends events."""

    def __init__(
        self, job: JobSpec, progress: RunProgress, limits: ConcurrencyLimits | None
    ) -> None:
        self._job = job
        self._client = LambdaClient(job.functions_region, progress, connections=MOST_UNDER_WAY)
        self._turn = count()
        if limits is None:
            limits = read_limits(self._client.api, job.function, job.at_once, progress)
        super().__init__(limits.effective)
        self.threads = events_under_way(limits.round_trip_s)
        names = len(job.function)
        self._bucket = TokenBucket(PER_S * names, BURST * names, monotonic_ns())

    def admit(self, wanted: int, in_flight: int) -> int:
        now_ns = monotonic_ns()
        number = max(0, min(super().admit(wanted, in_flight), self._bucket.available(now_ns)))
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
