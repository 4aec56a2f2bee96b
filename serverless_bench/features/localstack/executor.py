"""Run LocalStack's functions as processes of sbench's Lambda host.

This file is copied into LocalStack's environment: it imports only modules of LocalStack and of
the standard library. LocalStack finds it by its entry point (the group
``localstack.lambda.runtime_executor``) and requests execution environments from it, which the
host at ``SBENCH_LAMBDA_HOST`` provides.
"""

import base64
import http.client
import json
import os
from typing import Any
from urllib.parse import urlsplit

from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

NAME = "sbench"
_START_S = 120.0
_TIMEOUT_S = 30.0
"""Time that the host may need in addition to the function's timeout."""
_LOOPBACK = "127.0.0.1"


class HostError(RuntimeError):
    """The host failed a request; LocalStack shows this to its caller."""


class SbenchExecutor(RuntimeExecutor):  # type: ignore[misc]  # LocalStack has no types here
    """An execution environment provided by the host."""

    _path = ""

    def start(self, env_vars: dict[str, str]) -> None:
        """Create an environment, which has requested an event when this returns."""
        config = self.function_version.config
        body = {
            "function": self.function_version.id.function_name,
            "arn": self.function_version.qualified_arn,
            "code": str(config.code.get_unzipped_code_location()),
            "layers": [_layer(layer) for layer in config.layers or ()],
            "handler": config.handler,
            "environment": {name: str(value) for name, value in env_vars.items()},
            "memory_mib": config.memory_size,
        }
        response = _request("POST", "/sbench/environments", json.dumps(body).encode())
        if response.status == http.client.BAD_GATEWAY:
            # It never requested its first event: its output is the response to the caller.
            raise StatusErrorException("the environment did not start", payload=response.body)
        self._path = f"/sbench/environments/{json.loads(response.body)['id']}"

    def stop(self) -> None:
        """End the environment, whatever it is doing."""
        if self._path:
            path, self._path = self._path, ""
            _request("DELETE", path)

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        """Have the environment handle an event."""
        timeout_s = float(self.function_version.config.timeout)
        request_id = payload["invoke-id"]
        headers = {"X-Sbench-Timeout-S": f"{timeout_s:g}", "X-Sbench-Request-Id": request_id}
        response = _request(
            "POST",
            f"{self._path}/invocations",
            payload["payload"].encode(),
            headers,
            timeout_s=timeout_s + _TIMEOUT_S,
        )
        return InvocationResult(
            request_id=request_id,
            payload=response.body,
            is_error="X-Amz-Function-Error" in response.headers,
            logs=base64.b64decode(response.headers.get("X-Amz-Log-Result", "")).decode(
                errors="replace"
            ),
        )

    def get_logs(self) -> str:
        """Return the complete output; empty once the environment has been ended."""
        if not self._path:
            return ""
        return _request("GET", f"{self._path}/logs").body.decode(errors="replace")

    def get_address(self) -> str:
        """Return the address at which LocalStack reaches the environment, which it never needs."""
        return _LOOPBACK

    def get_endpoint_from_executor(self) -> str:
        """Return the address at which the environment reaches LocalStack."""
        return _LOOPBACK

    def get_runtime_endpoint(self) -> str:
        """Return the URL to which environments in Docker report; these environments do not."""
        return f"http://{_LOOPBACK}/"

    @classmethod
    def prepare_version(cls, function_version: Any) -> None:
        """Unzip the code."""
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: Any) -> None:
        """Delete the unzipped code."""
        function_version.config.code.destroy_cached()


class SbenchPlugin(RuntimeExecutorPlugin):  # type: ignore[misc]  # LocalStack has no types here
    """Plugin that the entry point names."""

    name = NAME

    def load(self, *arguments: object, **options: object) -> type[SbenchExecutor]:
        """Return the executor."""
        return SbenchExecutor


class _HostResponse:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.body = response.read()
        self.headers = response.headers
        self.status = response.status


def _request(
    method: str,
    path: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    timeout_s: float = _START_S,
) -> _HostResponse:
    """Send a request to the host.

    Raises
    ------
    HostError
        If it cannot be reached, or rejects the request, with its message.
    """
    address = urlsplit(os.environ["SBENCH_LAMBDA_HOST"])
    connection = http.client.HTTPConnection(
        address.hostname or _LOOPBACK, address.port, timeout=timeout_s
    )
    try:
        # Its address ends in the token that all requests need.
        connection.request(method, address.path + path, body, headers or {})
        response = _HostResponse(connection.getresponse())
    except OSError as exc:
        raise HostError(f"sbench's Lambda host: {exc}") from exc
    finally:
        connection.close()
    if response.status >= http.client.BAD_REQUEST and response.status != http.client.BAD_GATEWAY:
        raise HostError(response.body.decode(errors="replace"))
    return response


def _layer(layer: Any) -> str:
    layer.code.prepare_for_execution()
    return str(layer.code.get_unzipped_code_location())
