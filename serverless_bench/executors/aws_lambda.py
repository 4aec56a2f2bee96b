"""Run functions on AWS Lambda, or on anything that answers its Invoke API.

Events go out at the rate at which Lambda makes environments, and no more at once than the
account may have alive: an event that waits in Lambda's queue is one that nobody can see.
A refused one is sent again after a random pause (AWS Architecture Blog, "Exponential
Backoff And Jitter"); what was accepted twice runs once, because the launch is claimed.
"""

import json
import random
from collections.abc import Callable, Collection, Generator, Iterable
from dataclasses import asdict
from itertools import count
from typing import Any, Final

import botocore.session
from botocore import exceptions as boto
from botocore.config import Config

from serverless_bench.clock import monotonic_ns, sleep
from serverless_bench.errors import ExecutorError, UsageError
from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.remote.launcher import NotLaunchedError
from serverless_bench.executors.remote.map import RemoteMap
from serverless_bench.executors.remote.requested_records import RequestedRecords
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import Outcome
from serverless_bench.token_bucket import TokenBucket
from serverless_bench.units import NS_PER_S

BURST: Final = 1000
PER_S: Final = 100.0
"""New environments that one function gets at once, and per second after that (AWS Lambda
developer guide, "Lambda scaling behavior": 1,000 every 10 seconds, refilled continuously,
what is not used does not add up)."""
_THREADS: Final = 24
_TIMEOUT_S: Final = 120.0
_BASE_S: Final = 0.1
_CAP_S: Final = 5.0
_PASSING: Final = frozenset(
    {"EC2ThrottledException", "ServiceException", "ThrottlingException", "TooManyRequestsException"}
)
_EXPIRED: Final = frozenset(
    {"ExpiredTokenException", "InvalidSignatureException", "UnrecognizedClientException"}
)
_LOST: Final = (
    boto.ConnectionError,
    boto.CredentialRetrievalError,
    boto.EndpointConnectionError,
    boto.HTTPClientError,
)
_QUOTA_UNKNOWN: Final = 1000
"""The quota of an account that never asked for more; new accounts have less."""


class LambdaExecutor:
    """Invokes deployed functions, and finds what they measured below the control prefix.

    Parameters
    ----------
    job
        Has ``functions`` and ``control``; its ``concurrency`` is the most that is alive at
        once, if the account's quota is not lower.
    """

    def __init__(self, job: JobSpec) -> None:
        self._job = job
        self._seen = RequestedRecords(job.invocations)

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        if not self._job.functions:
            raise UsageError(
                "`executor` lambda needs to know which function to invoke",
                hint="`stack` NAME for what `sam deploy` made; `function` NAME for any other;"
                " `sbench lambda-host` runs one here",
            )
        launcher = _Invoker(self._job, progress)
        return RemoteMap(self._job, launcher, progress, seen=self._seen).run(invocations)

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> Generator[Outcome, None, None]:
        remote = RemoteMap(
            self._job, None, progress, since_ns=since_ns, seen=self._seen, known=known
        )
        return remote.run(invocations)


class _Invoker:
    """Sends events; see ``remote.launcher``."""

    batch = 1
    threads = _THREADS

    def __init__(self, job: JobSpec, progress: RunProgress) -> None:
        self._job = job
        self._progress = progress
        self._client = self._open()
        self._turn = count()
        self._most = self._quota()
        names = len(job.functions)
        self._bucket = TokenBucket(PER_S * names, BURST * names, monotonic_ns())
        self._renewed_ns = 0
        self._accepted = False
        """Whether the service has ever taken an event: then a lost connection is no reason
        to give up."""

    def admit(self, wanted: int, in_flight: int) -> int:
        now_ns = monotonic_ns()
        number = max(0, min(wanted, self._most - in_flight, self._bucket.available(now_ns)))
        self._bucket.take(now_ns, number)
        return number

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        functions = self._job.functions
        deadline_ns = monotonic_ns() + round(_TIMEOUT_S * NS_PER_S)
        for refusals in count():
            name = functions[next(self._turn) % len(functions)]
            (invocation,) = events()
            payload = json.dumps(asdict(invocation)).encode()
            try:
                self._client.invoke(FunctionName=name, InvocationType="Event", Payload=payload)
            except (boto.BotoCoreError, boto.ClientError) as exc:
                self._tolerate(exc, name)
                problem = str(exc)
            else:
                self._accepted = True
                return refusals
            if monotonic_ns() > deadline_ns:
                break
            sleep(random.uniform(0, min(_CAP_S, _BASE_S * 2**refusals)))  # noqa: S311
        raise NotLaunchedError(f"not launched for {_TIMEOUT_S:g} s: {problem}", refusals + 1)

    def close(self) -> None:
        self._client.close()

    def _tolerate(self, exc: Exception, name: str) -> None:
        """Return if the next attempt may succeed."""
        if isinstance(exc, boto.ClientError):
            code = exc.response.get("Error", {}).get("Code", "")
            status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in _EXPIRED:
                self._renew(code)
            elif code not in _PASSING and status < 500:
                raise ExecutorError(
                    f"function {name!r} cannot be invoked: {exc}",
                    hint="check `function` or `stack`, the region, and lambda:InvokeFunction",
                ) from exc
        elif isinstance(exc, boto.NoCredentialsError | boto.PartialCredentialsError):
            raise ExecutorError(
                "there are no credentials to invoke functions with",
                hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            ) from exc
        elif (
            # There never was anybody at the endpoint.
            (isinstance(exc, boto.EndpointConnectionError) and not self._accepted)
            or not isinstance(exc, _LOST)
        ):
            raise ExecutorError(
                f"function {name!r} cannot be invoked: {exc}",
                hint="check the region, the network, and AWS_ENDPOINT_URL_LAMBDA if it is set",
            ) from exc

    def _renew(self, code: str) -> None:
        """Look for credentials again: those of a profile may have been renewed."""
        now_ns = monotonic_ns()
        if now_ns - self._renewed_ns > NS_PER_S:
            self._renewed_ns = now_ns
            self._client = self._open()
            note = f"the credentials were refused ({code}); tried again with what the profile has"
            if note not in self._progress.notes:
                self._progress.notes.append(note)

    def _open(self) -> Any:  # noqa: ANN401 - made at run time by botocore
        """Return a botocore client for Lambda that tries nothing twice by itself."""
        return botocore.session.Session().create_client(
            "lambda",
            region_name=self._job.target.region,
            config=Config(
                connect_timeout=5,
                read_timeout=30,
                max_pool_connections=_THREADS,
                retries={"mode": "standard", "total_max_attempts": 1},
            ),
        )

    def _quota(self) -> int:
        """Return how many functions may be alive at once."""
        wanted = min(self._job.concurrency, self._job.invocations)
        try:
            limits = self._client.get_account_settings()["AccountLimit"]
            quota = int(limits.get("UnreservedConcurrentExecutions", _QUOTA_UNKNOWN))
            reserved = [
                self._client.get_function_concurrency(FunctionName=name).get(
                    "ReservedConcurrentExecutions"
                )
                for name in self._job.functions
            ]
        except (boto.BotoCoreError, boto.ClientError, KeyError) as exc:
            self._progress.notes.append(f"the concurrency quota is unknown ({exc}); 1,000 assumed")
            quota, reserved = _QUOTA_UNKNOWN, []
        if reserved and None not in reserved:
            quota = sum(number for number in reserved if number is not None)
        if quota < 1:
            raise ExecutorError(
                "the quota lets no function run", hint="raise the reserved concurrency"
            )
        if quota < wanted:
            batches = -(-self._job.invocations // quota)
            self._progress.notes.append(
                f"the quota lets {quota} functions run at once: {batches} batches instead of one"
            )
        return min(wanted, quota)
