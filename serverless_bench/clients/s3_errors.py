"""Classification of S3 errors, from responses."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from serverless_bench.base.clock import http_date_s, wall_ns
from serverless_bench.base.errors import (
    AccessDenied,
    BadRequest,
    NotFound,
    OperationError,
    ServerFault,
    Throttled,
    TimedOut,
    WrongRegion,
)
from serverless_bench.base.units import NS_PER_S, whole_number

_BY_CODE: Final[Mapping[str, type[OperationError]]] = {
    "AccessDenied": AccessDenied,
    "AllAccessDisabled": AccessDenied,
    "ExpiredToken": AccessDenied,
    "InvalidAccessKeyId": AccessDenied,
    "InvalidToken": AccessDenied,
    "RequestTimeTooSkewed": AccessDenied,
    "SignatureDoesNotMatch": AccessDenied,
    "NoSuchBucket": NotFound,
    "NoSuchKey": NotFound,
    "NoSuchUpload": NotFound,
    # Concurrent conditional writes; AWS recommends a retry.
    "ConditionalRequestConflict": ServerFault,
    "InternalError": ServerFault,
    "RequestTimeout": TimedOut,
    "ServiceUnavailable": Throttled,
    "SlowDown": Throttled,
    "Throttling": Throttled,
    "ThrottlingException": Throttled,
    "TooManyRequests": Throttled,
}
"""Amazon S3 API reference, "Error responses"; the code is more specific than the status."""

_BY_STATUS: Final[Mapping[int, type[OperationError]]] = {
    401: AccessDenied,
    403: AccessDenied,
    404: NotFound,
    408: TimedOut,
    429: Throttled,
    # What a server does not offer at all it will not offer a moment later.
    501: BadRequest,
    503: Throttled,
    505: BadRequest,
}
"""Other statuses from 500 on are faults of the server, known or not (RFC 9110, section 15)."""

_ELSEWHERE: Final = frozenset(
    {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
)
_EXPECTED: Final = re.compile(r"expect(?:ing|ed):? ['\"]?(?:\d{8}/)?([a-z0-9-]+)['\"/]")
"""Region in a message, for stores that send no element for it (Garage)."""


def s3_error(
    status: int,
    code: str,
    message: str,
    headers: Mapping[str, str],
    *,
    region: str | None = None,
    endpoint: str | None = None,
) -> OperationError:
    """Return the error for a response.

    Parameters
    ----------
    status, code, message
        HTTP status and the ``Code`` and ``Message`` elements of the body, which may be empty
        (responses to HEAD have no body).
    headers
        Headers of the response, names in lower case.
    region, endpoint
        Redirect location in the body or the ``Location`` header, if any.
    """
    text = f"{code or 'HTTP ' + str(status)}: {message}" if message else code or f"HTTP {status}"
    named = _EXPECTED.search(message) if code in _ELSEWHERE else None
    region = headers.get("x-amz-bucket-region") or region or (named and named[1])
    if 300 <= status < 400 or (code in _ELSEWHERE and region):
        new_url = endpoint if endpoint and _is_endpoint(endpoint) else None
        return WrongRegion(text, status=status, region=region, endpoint=new_url)
    others = ServerFault if status >= 500 else BadRequest
    error = _BY_CODE.get(code) or _BY_STATUS.get(status, others)
    if error is Throttled:
        return Throttled(text, status=status, retry_after_s=_retry_after_s(headers))
    return error(text, status=status)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait that the store asks for, in seconds or until a date (RFC 9110, 10.2.3)."""
    text = headers.get("retry-after", "").strip()
    seconds, _, fraction = text.partition(".")
    if (whole_s := whole_number(seconds)) is not None:
        # Some servers write decimals.
        return float(text) if fraction.isdecimal() else float(whole_s)
    until_s, date_s = http_date_s(text), http_date_s(headers.get("date"))
    if until_s is None:
        return None
    # The clock of the store, if it says what time it is: this machine's may be wrong.
    return max(until_s - (wall_ns() / NS_PER_S if date_s is None else date_s), 0.0)


def _is_endpoint(url: str) -> bool:
    """Return whether a URL sent by the store has a host and a valid port."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
