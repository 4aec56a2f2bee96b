"""Invoke requests to AWS Lambda, which may be refused for a while.

A refused one is sent again after a random pause (AWS Architecture Blog, "Exponential
Backoff And Jitter").
"""

import random
import threading
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.aws.client import (
    CREDENTIALS,
    LOST_CREDENTIALS,
    credentials_error,
    is_skewed,
    network_problem,
    open_client,
)
from serverless_bench.aws.function_states import (
    DEPLOY_AGAIN,
    READY_S,
    WAKING,
    describe_state,
    remedy,
    will_be_ready,
)
from serverless_bench.aws.lambda_events import send_event
from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import ExecutorError
from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.remote.launcher import NotLaunchedError
from serverless_bench.units import NS_PER_S

_BASE_S: Final = 0.1
_CAP_S: Final = 5.0
_PASSING: Final = frozenset(
    {"EC2ThrottledException", "ServiceException", "ThrottlingException", "TooManyRequestsException"}
)
_EXPIRED: Final = frozenset(
    {
        "ExpiredTokenException",
        "InvalidSignatureException",
        "RequestTimeTooSkewed",
        "UnrecognizedClientException",
    }
)
_PATIENCE_S: Final = 300.0
"""How long credentials may be refused or lost before the driver gives up."""
_CHECK_HINT: Final = "check `function` or `stack`, the region, and lambda:InvokeFunction"
_LOST: Final = (boto.ConnectionError, boto.EndpointConnectionError, boto.HTTPClientError)
_NOBODY: Final = (boto.EndpointConnectionError, boto.ProxyConnectionError, boto.SSLError)
"""Where the service was never reached they do not pass."""

Request = Mapping[str, Any]
"""Parameters of Invoke, as botocore calls them."""


class LambdaClient:
    """Sends Invoke requests; threads may share it.

    Parameters
    ----------
    region
        Where the functions are; None takes the AWS configuration's region.
    progress
        Is told when credentials were looked for again.
    connections
        Requests at once, at most.
    answer_s
        How long a response may take: of a function that is waited for, as long as that runs.
    patient
        Whether to look again for credentials that are refused or lost: in the middle of a run, and
        not before it.

    Raises
    ------
    ExecutorError
        If there are no credentials.
    """

    def __init__(
        self,
        region: str | None,
        progress: RunProgress,
        *,
        connections: int,
        answer_s: float = 30.0,
        patient: bool = True,
    ) -> None:
        self._progress = progress
        self._open = partial(
            open_client,
            "lambda",
            region=region,
            read_timeout=answer_s,
            max_pool_connections=connections,
            # Attempts are ours to count.
            retries={"mode": "standard", "total_max_attempts": 1},
        )
        self.api = self._open()
        self._renewed_ns = 0
        self._refused_ns = 0
        """Since when the credentials have been refused or lost; 0 while they are good."""
        self._patient = patient
        self._over = threading.Event()
        self._accepted = False
        """Whether the service has ever taken a request: then a lost connection is no reason to
        give up."""

    def invoke(
        self, request: Callable[[], Request], *, timeout_s: float
    ) -> tuple[Mapping[str, Any], int]:
        """Return the response to a request, and how often it was refused before.

        Parameters
        ----------
        request
            Makes it, anew for each attempt.
        timeout_s
            How long it is tried again, from when the credentials were last refused or lost, or the
            function was last not ready.

        Raises
        ------
        NotLaunchedError
            If it was refused for too long.
        ExecutorError
            If it can never succeed, or the credentials were refused or lost, or the function was
            not ready, for too long.
        """
        began_ns = monotonic_ns()
        deadline_ns = began_ns + round(timeout_s * NS_PER_S)
        for refusals in count():
            wanted = request()
            try:
                answer = self._send(wanted)
            except (boto.BotoCoreError, boto.ClientError) as exc:
                problem, is_waking = str(exc), self._tolerate(exc, wanted["FunctionName"])
            else:
                self._accepted, self._refused_ns = True, 0
                return answer, refusals
            if is_waking:
                self._await_ready(wanted["FunctionName"], problem, began_ns)
            if self._refused_ns or is_waking:
                deadline_ns = monotonic_ns() + round(timeout_s * NS_PER_S)
            elif monotonic_ns() > deadline_ns:
                break
            if self._pause(refusals):
                break
        raise NotLaunchedError(f"not launched for {timeout_s:g} s: {problem}", refusals + 1)

    def configuration(self, name: str) -> Mapping[str, Any]:
        """Return how a function is set up, when neither it nor an update of it is being made.

        Returns
        -------
        Mapping
            GetFunctionConfiguration's answer; empty if that may not be asked.

        Raises
        ------
        ExecutorError
            If it cannot run, or is not ready for too long.
        """
        began_ns = monotonic_ns()
        for looks in count():
            try:
                found: Mapping[str, Any] = self.api.get_function_configuration(FunctionName=name)
            except (boto.BotoCoreError, boto.ClientError):
                return {}
            state = describe_state(found)
            if found.get("State") == "Failed":
                raise ExecutorError(
                    f"function {name!r} cannot run: {state}", hint=remedy(state) or DEPLOY_AGAIN
                )
            if not will_be_ready(state) or self._over.is_set():
                break
            self._await_ready(name, state, began_ns)
            self._pause(looks)
        return found

    def close(self) -> None:
        """Close its connections; what was refused is not sent again, and no function waited for."""
        self._over.set()
        self.api.close()

    def _send(self, wanted: Request) -> Mapping[str, Any]:
        if wanted["InvocationType"] == "Event":
            return send_event(self.api, wanted["FunctionName"], wanted["Payload"])
        answer: Mapping[str, Any] = self.api.invoke(**wanted)
        return answer

    def _pause(self, tries: int) -> bool:
        """Wait for a random time before the next attempt; tell whether there shall be none."""
        return self._over.wait(random.uniform(0, min(_CAP_S, _BASE_S * 2**tries)))  # noqa: S311

    def _await_ready(self, name: str, problem: str, began_ns: int) -> None:
        """Note that a function is waited for.

        Raises
        ------
        ExecutorError
            If it has been for too long.
        """
        if (monotonic_ns() - began_ns) / NS_PER_S > READY_S:
            raise ExecutorError(
                f"function {name!r} is not ready after {READY_S:g} s: {problem}",
                hint="sbench doctor --function shows its state; if that stays, deploy it again",
            )
        self._progress.note(f"function {name} was not ready, and waited for: {problem}")

    def _tolerate(self, exc: Exception, name: str) -> bool:
        """Return if the next attempt may succeed, and whether it waits for the function."""
        if isinstance(exc, boto.ClientError):
            code = exc.response.get("Error", {}).get("Code", "")
            status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in _EXPIRED:
                if not self._patient:
                    raise credentials_error(exc) from exc
                why = "this machine's clock is off" if is_skewed(exc) else code
                self._renew(exc, f"refused ({why})")
                return False
            self._refused_ns = 0
            # A function that could not be made is refused with a code of those that will be.
            if code in WAKING and "state: Failed" not in str(exc):
                return True
            hint = remedy(code)
            if hint or (code not in _PASSING and status < 500):
                raise ExecutorError(
                    f"function {name!r} cannot be invoked: {exc}",
                    hint=hint or _CHECK_HINT,
                ) from exc
        elif isinstance(exc, LOST_CREDENTIALS) and self._patient:
            self._renew(exc, f"lost ({exc})")
        elif isinstance(exc, CREDENTIALS):
            raise credentials_error(exc) from exc
        elif (
            # There never was anybody at the endpoint.
            (isinstance(exc, _NOBODY) and not self._accepted) or not isinstance(exc, _LOST)
        ):
            text, hint = network_problem(
                exc, "check the region, the network, and AWS_ENDPOINT_URL_LAMBDA if it is set"
            )
            raise ExecutorError(f"function {name!r} cannot be invoked: {text}", hint=hint) from exc
        return False

    def _renew(self, refused: Exception, what: str) -> None:
        """Look for credentials again: those of a profile may have been renewed."""
        now_ns = monotonic_ns()
        self._refused_ns = self._refused_ns or now_ns
        if (now_ns - self._refused_ns) / NS_PER_S > _PATIENCE_S:
            error = credentials_error(refused)
            hint = f"{error.hint}; sbench resume DIR goes on then"
            raise ExecutorError(str(error), hint=hint) from refused
        if now_ns - self._renewed_ns > NS_PER_S:
            self._renewed_ns = now_ns
            try:
                self.api = self._open(look_again=True)
            except ExecutorError as exc:
                what = f"lost ({exc})"
            self._progress.note(
                f"the credentials were {what}; tried again with what the profile has"
            )
