"""Answers in the words of AWS' own Lambda."""

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

MAX_SYNC_BYTES: Final = 6 * 1024 * 1024
MAX_ASYNC_BYTES: Final = 1024 * 1024
"""AWS Lambda developer guide, "Lambda quotas", invocation payload."""


class ApiError(Exception):
    """An error as the response to a request.

    Parameters
    ----------
    status
        Of HTTP.
    code
        Name of the exception in AWS' API reference.
    message
        What it says.
    members
        Further members of the error.
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


def reply(
    status: int, members: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return a response with JSON, or with nothing for None."""
    own = {"x-amzn-RequestId": str(uuid.uuid4()), **(headers or {})}
    if members is None:
        return web.Response(status=status, headers=own)
    return web.json_response(members, status=status, headers=own)


def not_found(address: str) -> ApiError:
    """Return the error for a function that there is not."""
    return ApiError(404, "ResourceNotFoundException", f"Function not found: {address}")


def too_many(reason: str) -> ApiError:
    """Return the error for a request that may be tried again later."""
    return ApiError(429, "TooManyRequestsException", "Rate Exceeded.", Reason=reason)


def too_large(size: int, *, event: bool) -> ApiError:
    """Return the error for a payload of ``size`` bytes."""
    if event:
        text = (
            f"{size} byte payload is too large for the Event invocation type "
            f"(limit {MAX_ASYNC_BYTES} bytes)"
        )
    else:
        text = (
            f"Request must be smaller than {MAX_SYNC_BYTES} bytes for the InvokeFunction operation"
        )
    return ApiError(413, "RequestTooLargeException", text)


async def json_body(request: web.Request) -> dict[str, Any]:
    """Return the JSON object that a request carries.

    Raises
    ------
    ApiError
        400 if it carries none.
    """
    try:
        return dict(json.loads(await request.read()))
    except (ValueError, TypeError) as exc:
        raise ApiError(400, "InvalidRequestContentException", "not a JSON object") from exc
