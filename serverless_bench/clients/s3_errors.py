"""Classification of S3 errors, from responses and from error names of the AWS Common Runtime."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from serverless_bench.base.clock import http_date_s, wall_ns
from serverless_bench.base.errors import (
    AccessDenied,
    BadRequest,
    BadResponse,
    ConnectionLost,
    Corrupt,
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
_ELEMENT: Final = re.compile(r"<(Code|Message|Region)>([^<]*)</")
_CODE: Final = re.compile(r"\(code: (\w+)\)")


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


def error_in_text(status: int, text: str) -> OperationError:
    """Return the error for a response of which a library exposes only the text."""
    elements = dict(_ELEMENT.findall(text))
    code = elements.get("Code") or "".join(_CODE.findall(text)[:1])
    return s3_error(status, code, elements.get("Message", ""), {}, region=elements.get("Region"))


_BY_CRT_NAME: Final[Mapping[str, type[OperationError]]] = {
    r"S3_SLOW_DOWN|RETRY_PERMISSION_DENIED": Throttled,
    r"S3_INTERNAL_ERROR|S3_NON_RECOVERABLE_ASYNC_ERROR": ServerFault,
    r"CHECKSUM_MISMATCH": Corrupt,
    r"TIMEOUT|THROUGHPUT_FAILURE": TimedOut,
    r"^AWS_AUTH_": AccessDenied,
    r"INVALID_RESPONSE|INVALID_CONTENT|MISSING_|RESPONSE_|XML|PROTOCOL_ERROR": BadResponse,
    r"^AWS_IO_|^AWS_ERROR_HTTP_|S3_CONNECTION": ConnectionLost,
}
"""Error by a pattern in the error name of the AWS Common Runtime; the first match wins. The names
are defined in the headers of aws-c-io, aws-c-http, aws-c-auth and aws-c-s3."""


def crt_error(name: str, message: str) -> OperationError:
    """Return the error for the runtime's error ``name``, without a status."""
    # The runtime hides the response to errors that it could retry (500, 503).
    matches = (error for part, error in _BY_CRT_NAME.items() if re.search(part, name))
    return next(matches, OperationError)(f"{name}: {message}"[:200])
