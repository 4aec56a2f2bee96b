"""Invoke requests to AWS Lambda, with retries of throttled ones.

A throttled request is repeated after a random pause (AWS Architecture Blog, "Exponential Backoff
And Jitter").
"""

import random
import threading
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import ExecutorError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.aws_errors import (
    CREDENTIALS,
    LOST_CREDENTIALS,
    credentials_error,
    hint_for,
    is_skewed,
    network_problem,
    words_of,
)
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.aws.client import (
    DEPLOY_AGAIN,
    READY_S,
    WAKING,
    describe_state,
    open_client,
    remedy,
    will_be_ready,
)
from serverless_bench.features.aws.lambda_events import send_event
from serverless_bench.features.remote.launcher import NotLaunchedError

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
"""Maximum time with rejected or missing credentials before the driver gives up."""
_LOST: Final = (boto.ConnectionError, boto.EndpointConnectionError, boto.HTTPClientError)
_NOBODY: Final = (boto.EndpointConnectionError, boto.ProxyConnectionError, boto.SSLError)
"""Errors that are permanent if the service was never reached."""

Request = Mapping[str, Any]
"""Parameters of Invoke, with botocore's names."""


class LambdaClient:
    """Sends Invoke requests; threads may share it.

    Parameters
    ----------
    region
        Region of the functions; None for the region in the AWS configuration.
    progress
        Receives a note when credentials are reloaded.
    connections
        Maximum number of concurrent requests.
    answer_s
        Timeout of a response: for a synchronous call, the duration of the function.
    patient
        Whether to reload rejected or missing credentials: during a run, but not before it.

    Raises
    ------
    ExecutorError
        If no credentials exist.
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
            # The caller counts attempts.
            retries={"mode": "standard", "total_max_attempts": 1},
        )
        self.api = self._open()
        self._renewed_ns = 0
        self._refused_ns = 0
        """Time since when credentials are rejected or missing; 0 while they are valid."""
        self._patient = patient
        self._over = threading.Event()
        self._accepted = False
        """Whether the service has accepted any request: from then on, lost connections are
        retried."""

    def invoke(
        self, request: Callable[[], Request], *, timeout_s: float
    ) -> tuple[Mapping[str, Any], int]:
        """Return the response to a request, and the number of rejections before.

        Parameters
        ----------
        request
            Creates the request, again for each attempt.
        timeout_s
            Time limit for retries, since the last time that credentials were rejected or the
            function was not ready.

        Raises
        ------
        NotLaunchedError
            If it was throttled for too long.
        ExecutorError
            If it can never succeed, or credentials were rejected or missing, or the function was
            not ready, for too long.
        """
        began_ns = monotonic_ns()
        deadline_ns = began_ns + round(timeout_s * NS_PER_S)
        for refusals in count():
            wanted = request()
            try:
                answer = self._send(wanted)
            except (boto.BotoCoreError, boto.ClientError) as exc:
                problem, is_waking = words_of(exc), self._tolerate(exc, wanted["FunctionName"])
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
        """Return the configuration of a function, after waiting for its creation or update.

        Returns
        -------
        Mapping
            Response of GetFunctionConfiguration; empty if access is denied.

        Raises
        ------
        ExecutorError
            If it cannot run, or is not ready for too long.
        """
        began_ns = monotonic_ns()
        for looks in count():
            try:
                configuration: Mapping[str, Any] = self.api.get_function_configuration(
                    FunctionName=name
                )
            except (boto.BotoCoreError, boto.ClientError):
                return {}
            state = describe_state(configuration)
            if configuration.get("State") == "Failed":
                raise ExecutorError(
                    f"function {name!r} cannot run: {state}", hint=remedy(state) or DEPLOY_AGAIN
                )
            if not will_be_ready(state) or self._over.is_set():
                break
            self._await_ready(name, state, began_ns)
            self._pause(looks)
        return configuration

    def close(self) -> None:
        """Close its connections, and stop all retries and waits for functions."""
        self._over.set()
        self.api.close()

    def _send(self, wanted: Request) -> Mapping[str, Any]:
        if wanted["InvocationType"] == "Event":
            return send_event(self.api, wanted["FunctionName"], wanted["Payload"])
        answer: Mapping[str, Any] = self.api.invoke(**wanted)
        return answer

    def _pause(self, tries: int) -> bool:
        """Wait for a random time before the next attempt; return whether the client was closed."""
        return self._over.wait(random.uniform(0, min(_CAP_S, _BASE_S * 2**tries)))

    def _await_ready(self, name: str, problem: str, began_ns: int) -> None:
        """Note that the driver waits for a function.

        Raises
        ------
        ExecutorError
            If the wait takes too long.
        """
        if (monotonic_ns() - began_ns) / NS_PER_S > READY_S:
            raise ExecutorError(
                f"function {name!r} is not ready after {READY_S:g} s: {problem}",
                hint="sbench doctor --function shows its state; if that stays, deploy it again",
            )
        self._progress.note(f"function {name} was not ready; waiting for it: {problem}")

    def _tolerate(self, exc: Exception, name: str) -> bool:
        """Return if the next attempt may succeed, and whether it waits for the function."""
        if isinstance(exc, boto.ClientError):
            code = exc.response.get("Error", {}).get("Code", "")
            status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in _EXPIRED:
                if not self._patient:
                    raise credentials_error(exc) from exc
                reason = "this machine's clock is off" if is_skewed(exc) else code
                self._renew(exc, f"refused ({reason})")
                return False
            self._refused_ns = 0
            # Lambda rejects a failed function with the same code as one that will be ready.
            if code in WAKING and "state: Failed" not in str(exc):
                return True
            hint = remedy(code)
            if hint or (code not in _PASSING and status < 500):
                raise ExecutorError(
                    f"function {name!r} cannot be invoked: {words_of(exc)}",
                    hint=hint
                    or hint_for(exc)
                    or "check `function` or `stack`, the region, and lambda:InvokeFunction",
                ) from exc
        elif isinstance(exc, LOST_CREDENTIALS) and self._patient:
            self._renew(exc, f"lost ({words_of(exc)})")
        elif isinstance(exc, CREDENTIALS):
            raise credentials_error(exc) from exc
        elif (
            # The endpoint was never reached.
            (isinstance(exc, _NOBODY) and not self._accepted) or not isinstance(exc, _LOST)
        ):
            text, hint = network_problem(
                exc, "check the region, the network, and AWS_ENDPOINT_URL_LAMBDA if it is set"
            )
            raise ExecutorError(f"function {name!r} cannot be invoked: {text}", hint=hint) from exc
        return False

    def _renew(self, refused: Exception, what: str) -> None:
        """Reload credentials: those of a profile may have been renewed."""
        now_ns = monotonic_ns()
        self._refused_ns = self._refused_ns or now_ns
        if (now_ns - self._refused_ns) / NS_PER_S > _PATIENCE_S:
            error = credentials_error(refused)
            hint = f"{error.hint}; then continue with sbench resume DIR"
            raise ExecutorError(str(error), hint=hint) from refused
        if now_ns - self._renewed_ns > NS_PER_S:
            self._renewed_ns = now_ns
            try:
                self.api = self._open(look_again=True)
            except ExecutorError as exc:
                what = f"lost ({exc})"
            # A narrow display shows only the beginning.
            self._progress.note(
                f"{credentials_error(refused).hint}: the credentials were {what}; retrying with"
                " those of the profile",
                act=True,
            )
