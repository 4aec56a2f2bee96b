"""What an error of the AWS Common Runtime means, for every client that stands on it."""

import re
from collections.abc import Mapping
from typing import Final

from serverless_bench.errors import (
    AccessDenied,
    BadResponse,
    ConnectionLost,
    Corrupt,
    OperationError,
    ServerFault,
    Throttled,
    TimedOut,
)

_BY_NAME: Final[Mapping[str, type[OperationError]]] = {
    r"S3_SLOW_DOWN|RETRY_PERMISSION_DENIED": Throttled,
    r"S3_INTERNAL_ERROR|S3_NON_RECOVERABLE_ASYNC_ERROR": ServerFault,
    r"CHECKSUM_MISMATCH": Corrupt,
    r"TIMEOUT|THROUGHPUT_FAILURE": TimedOut,
    r"^AWS_AUTH_": AccessDenied,
    r"INVALID_RESPONSE|INVALID_CONTENT|MISSING_|RESPONSE_|XML|PROTOCOL_ERROR": BadResponse,
    r"^AWS_IO_|^AWS_ERROR_HTTP_|S3_CONNECTION": ConnectionLost,
}
"""By what stands in the name; the first match wins. The names are those of the headers of
aws-c-io, aws-c-http, aws-c-auth and aws-c-s3."""


def crt_error(name: str, message: str) -> OperationError:
    """Return the error that the runtime's error ``name`` stands for, without a status."""
    # The runtime keeps a response to itself where it might have tried again (500, 503).
    found = (ours for part, ours in _BY_NAME.items() if re.search(part, name))
    return next(found, OperationError)(f"{name}: {message}"[:200])
