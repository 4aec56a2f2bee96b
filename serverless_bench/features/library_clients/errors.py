"""Errors of requests of which a library gives only a text, or a name, or less."""

import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import SplitResult

from serverless_bench.base.errors import (
    AccessDenied,
    BadResponse,
    CertificateRefused,
    ConnectionLost,
    Corrupt,
    OperationError,
    ServerFault,
    Throttled,
    TimedOut,
)
from serverless_bench.clients.environment import ca_bundle, find_proxy, refusal
from serverless_bench.clients.s3_errors import s3_error

_LOOK_S: Final = 5.0
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


@contextmanager
def translating(
    raised: tuple[type[Exception], ...], error_of: Callable[[str], OperationError]
) -> Iterator[None]:
    """Replace an exception of a library by the error for the text."""
    try:
        yield
    except raised as exc:
        raise error_of(str(exc)) from exc


def error_in_text(status: int, text: str) -> OperationError:
    """Return the error for a response of which a library exposes only the text."""
    elements = dict(re.findall(r"<(Code|Message|Region)>([^<]*)</", text))
    code = elements.get("Code") or "".join(re.findall(r"\(code: (\w+)\)", text)[:1])
    return s3_error(status, code, elements.get("Message", ""), {}, region=elements.get("Region"))


def crt_error(name: str, message: str) -> OperationError:
    """Return the error for the runtime's error ``name``, without a status."""
    # The runtime hides the response to errors that it could retry (500, 503).
    matches = (error for part, error in _BY_CRT_NAME.items() if re.search(part, name))
    return next(matches, OperationError)(f"{name}: {message}"[:200])


def look(url: SplitResult) -> CertificateRefused | None:
    """Return what is wrong with the certificate of a server; None if nothing is, or if unknown."""
    if url.scheme != "https" or find_proxy(url.geturl()):
        return None
    bundle, host = ca_bundle(), url.hostname or ""
    with suppress(OSError):
        context = ssl.create_default_context(cafile=bundle)
        try:
            with socket.create_connection((host, url.port or 443), _LOOK_S) as line:
                context.wrap_socket(line, server_hostname=host).close()
        except ssl.SSLCertVerificationError as exc:
            return refusal(str(exc))
    return None
