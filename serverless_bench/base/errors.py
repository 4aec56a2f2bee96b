"""All errors that this package raises, and their exit codes.

::

    SbenchError                 1   a bug, or an error without a specific class
    ├── UsageError              2   a flag, a job or a key file is wrong
    ├── PluginError             3   unknown plugin, or the library it needs is missing
    ├── ExecutorError           4   no function could be started
    ├── StoreError              5   the store is unreachable or denies access
    ├── ArchiveError            8   a run directory cannot be read or written
    ├── CostError              12   a job costs more than --max-cost
    └── OperationError              one attempt of one storage request failed
        ├── NotFound            the object or the bucket does not exist
        ├── AccessDenied        the credentials are missing, wrong or not allowed to
        ├── Throttled           the store requests a lower rate (503, 429)
        ├── ServerFault         the store failed (any other 5xx)
        ├── BadRequest          the store rejects the request for another reason
        ├── WrongRegion         the bucket is in another region, given in the error
        ├── ConnectionLost      refused, reset or closed before the end
        ├── CertificateRefused  the client does not accept the store's certificate
        ├── TimedOut            no byte moved for longer than the timeout
        ├── DeadlineExceeded    the function reached its deadline
        │   └── StopRequested   the run was stopped
        ├── BadResponse         a response that is not S3
        └── Corrupt             other bytes than were written

Exit codes 6 (functions failed or lost), 7 (corrupt data) and 130 (interrupted) belong to runs that
finished and have a report; see ``Summary.exit_code``. A shortage of the machine (disk, open files,
memory, processes) is not a bug either; see ``shortage``.

On the control path errors are raised and end the command. On the measured path they are data:
``body`` records each ``OperationError`` in a row, because a store that responds with 503 is a
result.
"""

import errno
import os
import re
from collections.abc import Collection, Iterable
from typing import ClassVar, Final

INCOMPLETE: Final = 6
"""Exit code of a run with failed or lost functions; the report has the details."""
CORRUPT: Final = 7
"""Exit code of a run that read other data than was written, or lost a write."""
WITHHELD: Final = 11
"""Exit code of a run with records that contradict each other or are impossible."""
INTERRUPTED: Final = 130
"""Exit code of a program that Ctrl-C ended (128 + SIGINT)."""
OUTPUT_UNREAD: Final = 141
"""Exit code of a program after its output pipe was closed (128 + SIGPIPE)."""
CLOUD_SECRETS: Final = (
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_MASTER_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "GOOGLE_BEARER_TOKEN",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
"""Variables with secrets of other clouds' libraries and tools."""
_VARIABLES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    *CLOUD_SECRETS,
)
_CREDENTIALS: Final = (
    r"(?i)\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|(?<=x-amz-security-token)\W{1,3}[^\s,;<&\"']+"
    r"|(?<=\bsig=)[^\s,;<&\"']+|(?<=\bbearer )[\w.~+/-]{8,}=*"
)
"""Ids of keys (IAM user guide, "Unique identifiers"), tokens in headers of requests, and signatures
in URLs of Azure."""
_LEAST: Final = 8
"""Shortest credential, in characters; a shorter value may be a normal word."""


def without_secrets(text: str) -> str:
    """Return a text from a store or a library without the user's credentials.

    Credentials of the environment are removed anywhere in the text: a store may echo a request.
    """
    for value in filter(None, map(os.environ.get, _VARIABLES)):
        if len(value) >= _LEAST:
            text = text.replace(value, "***")
    # Compiled only when there is an error, not in each command.
    return re.sub(_CREDENTIALS, "***", text)


_MOST_CHARACTERS: Final = 500
"""Most characters of a store's message, which may be unlimited."""


class SbenchError(Exception):
    """Base class; ``hint`` suggests the next step, ``exit_code`` ends the command.

    Examples
    --------
    >>> try:
    ...     sbench.load_run("nowhere")
    ... except sbench.SbenchError as error:
    ...     print(error)
    there is no run 'nowhere': neither a directory nor a name in sbench-runs
    """

    exit_code: int = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(SbenchError):
    """A flag, a setting, a job or a key file is wrong.

    Names of settings are in backquotes, in the message and in the hint; the command line replaces
    them by flags.

    Parameters
    ----------
    message, hint
        As in ``SbenchError``.
    field
        The invalid setting, or field of a specification; empty if there is none.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", field: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class PluginError(SbenchError):
    """A plugin name is unknown, or the library it needs is not installed."""

    exit_code = 3


class ExecutorError(SbenchError):
    """The executor failed completely: no function could be started."""

    exit_code = 4


class StoreError(SbenchError):
    """The store cannot be reached, started or used with these credentials."""

    exit_code = 5


class ArchiveError(SbenchError):
    """A run directory cannot be read or written."""

    exit_code = 8


class CostError(SbenchError):
    """A job costs, or would cost, more than the user allows."""

    exit_code = 12


class OperationError(SbenchError):
    """One attempt of one storage request failed.

    Parameters
    ----------
    message
        Description of the failure; credentials are removed.
    status
        HTTP status; None when there was no response.
    hint
        As in ``SbenchError``.
    """

    code: ClassVar[str] = "error"
    """Code of the error in records."""
    retryable: ClassVar[bool] = False
    """Whether the same request may succeed a moment later."""

    def __init__(self, message: str, *, status: int | None = None, hint: str = "") -> None:
        super().__init__(one_line(without_secrets(message)), hint=hint)
        self.status = status


def nearest(name: str, names: Iterable[str], *, least: float = 0.6) -> str:
    """Return the name that a misspelled name most likely stands for; empty if none is similar.

    ``least`` is the similarity that is needed, from 0 to 1.
    """
    # Imported only when there is an error.
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, sorted(names), n=1, cutoff=least)), "")


def suggestion(name: str, names: Iterable[str], *, otherwise: str = "") -> str:
    """Return a hint about an unknown name: the nearest name, or all names.

    ``otherwise`` replaces the list of all names.
    """
    known_names = sorted(names)
    if close := nearest(name, known_names):
        return f"did you mean {close}?"
    return otherwise or f"use one of {', '.join(known_names)}"


def check_known(
    names: Iterable[str], allowed: Collection[str], problem: str, *, otherwise: str = ""
) -> None:
    """Check names that a user gave.

    Parameters
    ----------
    names
        The names.
    allowed
        Known names.
    problem
        Start of the message, before the unknown name.
    otherwise
        As in ``suggestion``.

    Raises
    ------
    UsageError
        If a name is unknown.
    """
    for name in names:
        if name not in allowed:
            hint = suggestion(name, allowed, otherwise=otherwise)
            raise UsageError(f"{problem} {name!r}", hint=hint)


class NotFound(OperationError):
    """The object or the bucket does not exist."""

    code = "not_found"


class AccessDenied(OperationError):
    """The credentials are missing, wrong or not allowed to do this."""

    code = "access_denied"


class Throttled(OperationError):
    """The store requests a lower rate (S3 ``SlowDown``, HTTP 503 or 429)."""

    code = "throttled"
    retryable = True

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_s = retry_after_s
        """The store's ``Retry-After`` header; None without the header."""


class ServerFault(OperationError):
    """The store failed (any other 5xx)."""

    code = "server_error"
    retryable = True


class BadRequest(OperationError):
    """The store rejects the request for a reason without a specific class."""

    code = "bad_request"


class WrongRegion(OperationError):
    """The bucket is in another region.

    Parameters
    ----------
    message, status
        As in ``OperationError``.
    region
        Region of the bucket according to the store; None if unknown.
    endpoint
        ``scheme://host`` of the ``Location`` header; None without the header.
    """

    code = "wrong_region"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        region: str | None = None,
        endpoint: str | None = None,
    ) -> None:
        super().__init__(message, status=status)
        self.region = region
        self.endpoint = endpoint


class ConnectionLost(OperationError):
    """The connection was refused, reset or closed before the end of the response."""

    code = "connection_error"
    retryable = True


class CertificateRefused(OperationError):
    """The client does not accept the store's certificate.

    Parameters
    ----------
    what
        What is wrong with the certificate.
    hint
        As in ``SbenchError``.
    """

    code = "certificate"

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(f"the certificate {what}", hint=hint)
        self.what = what


class TimedOut(OperationError):
    """No byte moved for longer than the timeout."""

    code = "timeout"
    retryable = True


class DeadlineExceeded(OperationError):
    """The function reached its deadline in the middle of a request."""

    code = "deadline"


class StopRequested(DeadlineExceeded):
    """The run was stopped in the middle of a request."""

    code = "stopped"


def last_failure(error: BaseException) -> BaseException:
    """Return the last attempt's failure if no time was left for a retry, else the error itself."""
    return (isinstance(error, DeadlineExceeded) and error.__cause__) or error


class Hedged(OperationError):
    """Another request for the same bytes was answered first: not a failure."""

    code = "hedged"


class BadResponse(OperationError):
    """The response is not valid S3."""

    code = "bad_response"
    retryable = True


class Corrupt(OperationError):
    """The store delivered other bytes than were written."""

    code = "corrupt"


def one_line(text: str) -> str:
    """Return a message of a store, or of a library, as a printable line."""
    if len(text) <= _MOST_CHARACTERS and text.isprintable():
        return text
    start = text[:_MOST_CHARACTERS]
    return "".join(char if char.isprintable() else " " for char in start)


_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_MEMORY: Final = frozenset({errno.ENOMEM, errno.EAGAIN})


def shortage(cause: BaseException) -> SbenchError | None:
    """Return an error for a resource that this machine has run out of.

    Parameters
    ----------
    cause
        Exception raised by Python.

    Returns
    -------
    SbenchError or None
        None for other exceptions.

    Examples
    --------
    >>> str(shortage(OSError(28, "No space left on device", "keys.txt")))
    'cannot write keys.txt: No space left on device'
    """
    number = cause.errno if isinstance(cause, OSError) else None
    if isinstance(cause, OSError) and number in _DISK:
        path = "the output" if cause.filename is None else cause.filename
        return ArchiveError(f"cannot write {path}: {cause.strerror}", hint="free some disk space")
    if number in _FILES:
        return ExecutorError(
            "too many open files for the limit of this process",
            hint="raise it with `ulimit -n`, or lower `concurrency`",
        )
    # Threads, and the loader of libraries, give the reason only in the message.
    thread = isinstance(cause, RuntimeError) and str(cause).startswith("can't start new thread")
    library = isinstance(cause, ImportError) and "failed to map segment" in str(cause)
    if thread or library or number in _MEMORY or isinstance(cause, MemoryError):
        return ExecutorError(
            "not enough memory, or too many processes, for the limits of this process",
            hint="lower `concurrency`, or raise the limits that `ulimit -a` shows",
        )
    return None
