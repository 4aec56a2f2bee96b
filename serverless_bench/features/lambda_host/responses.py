"""Responses in the format of AWS' Lambda."""

import base64
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from serverless_bench.features.lambda_host.environment import InvokeRequest, InvokeResponse
from serverless_bench.features.lambda_host.functions import LATEST

Answer = Callable[[web.Request, dict[str, Any]], Mapping[str, Any] | None]
"""Handler of an operation, given a request and the JSON object; None means no content."""


class ApiError(Exception):
    """An error response to a request.

    Parameters
    ----------
    status
        HTTP status.
    code
        Name of the exception in AWS' API reference.
    message
        Message of the error.
    members
        Additional members of the error.
    """

    def __init__(self, status: int, code: str, message: str, **members: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.members = members

    def response(self) -> web.Response:
        """Return the response."""
        return reply(
            self.status,
            {"Type": "User", "message": str(self), "Message": str(self), **self.members},
            {"x-amzn-ErrorType": self.code},
        )


def too_many(reason: str) -> ApiError:
    """Return the error for a request that may be retried later."""
    return ApiError(429, "TooManyRequestsException", "Rate Exceeded.", Reason=reason)


def reply(
    status: int, members: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return a response with JSON, or an empty response for None."""
    all_headers = {"x-amzn-RequestId": str(uuid.uuid4()), **(headers or {})}
    if members is None:
        return web.Response(status=status, headers=all_headers)
    return web.json_response(members, status=status, headers=all_headers)


def outcome(call: InvokeRequest, response: InvokeResponse, *, log: bool) -> web.Response:
    """Return the response to a synchronous request, with the function's log if wanted."""
    headers = {"x-amzn-RequestId": call.request_id, "X-Amz-Executed-Version": LATEST}
    if response.kind:
        headers["X-Amz-Function-Error"] = "Unhandled"
    if log:
        headers["X-Amz-Log-Result"] = base64.b64encode(response.log).decode()
    return web.Response(body=response.body, headers=headers, content_type="application/json")


def operation(method: str, path: str, status: int, answer: Answer) -> web.RouteDef:
    """Return the route of an operation that takes JSON, or no body, and returns JSON."""

    async def handle(request: web.Request) -> web.Response:
        try:
            body = dict(json.loads(await request.read() or b"{}"))
        except (ValueError, TypeError) as exc:
            raise ApiError(400, "InvalidRequestContentException", "not a JSON object") from exc
        return reply(status, answer(request, body))

    return web.route(method, path, handle)
