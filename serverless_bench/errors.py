"""Every error this package raises, and the exit code that each one ends a command with.

::

    SbenchError                 1   a bug, or an error with no better name
    ├── UsageError              2   a flag, a job or a key file is wrong
    ├── PluginError             3   unknown plugin, or the library it needs is missing
    ├── ExecutorError           4   no function could be started
    ├── StoreError              5   the store cannot be reached or refuses us
    ├── ArchiveError            8   a run directory cannot be read or written
    ├── CostError              12   a job costs more than --max-cost
    └── OperationError              one attempt of one storage request failed
        ├── NotFound            the object or the bucket does not exist
        ├── AccessDenied        the credentials are missing, wrong or not allowed to
        ├── Throttled           the store asked us to slow down (503, 429)
        ├── ServerFault         the store failed (500, 502, 504)
        ├── BadRequest          the store refuses the request for another reason
        ├── WrongRegion         the bucket lives elsewhere; says where
        ├── ConnectionLost      refused, reset or closed before the end
        ├── TimedOut            no byte moved for longer than the timeout
        ├── DeadlineExceeded    the function ran out of its own time
        ├── BadResponse         an answer that is not S3
        └── Corrupt             other bytes than were written

Exit codes 6 (functions failed or lost), 7 (corrupt data) and 130 (interrupted) belong
to runs that ended and have a report; see ``Summary.exit_code``. What the machine itself is
short of (disk, open files, memory, processes) is no bug either; see ``shortage``.

On the control path errors are raised and end the command. On the measured path they
are data: ``body`` turns every ``OperationError`` into a row, because a store that
answers 503 is a result.
"""

import errno
import os
import re
from typing import ClassVar, Final

INCOMPLETE: Final = 6
"""Exit code of a run of which functions failed or were lost; all else is in its report."""
CORRUPT: Final = 7
"""Exit code of a run that read other data than was written, or lost a write."""
WITHHELD: Final = 11
"""Exit code of a run whose records contradict themselves, or what is possible."""
INTERRUPTED: Final = 130
"""Exit code of a program that Ctrl-C ended (128 + SIGINT)."""
OUTPUT_UNREAD: Final = 141
"""Exit code of a program whose output nobody reads any more (128 + SIGPIPE)."""
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
"""Variables of other clouds' libraries and tools that say what nobody may read."""
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
"""Ids of keys (IAM user guide, "Unique identifiers"), what headers of a request had, and what
signs a URL of Azure's."""
_LEAST: Final = 8
"""Characters; what is shorter is nobody's credential, but may be a word."""


def without_secrets(text: str) -> str:
    """Return a text from a store or a library without our credentials.

    Those of the environment go wherever they stand: a store may say again what it was told.
    """
    for value in filter(None, map(os.environ.get, _VARIABLES)):
        if len(value) >= _LEAST:
            text = text.replace(value, "***")
    # It is compiled when there is an error, and not in each command.
    return re.sub(_CREDENTIALS, "***", text)


_MOST_CHARACTERS: Final = 500
"""Of what a store says; it may go on for ever."""


class SbenchError(Exception):
    """Base class; ``hint`` says what to do next, ``exit_code`` ends the command.

    Examples
    --------
    >>> try:
    ...     sbench.load_run("nowhere")
    ... except sbench.SbenchError as error:
    ...     print(error)
    nowhere is not a run directory: it has no run.json
    """

    exit_code: int = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(SbenchError):
    """A flag, a setting, a job or a key file is wrong.

    Names of settings stand in backquotes, in the message and in the hint; the command line
    shows flags in their place.

    Parameters
    ----------
    message, hint
        As in ``SbenchError``.
    field
        The setting, or the field of a specification, that is wrong; empty if there is no one.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", field: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class PluginError(SbenchError):
    """A plugin name is unknown, or the library it needs is not installed."""

    exit_code = 3


class ExecutorError(SbenchError):
    """The executor failed as a whole: no function could be started."""

    exit_code = 4


class StoreError(SbenchError):
    """The store cannot be reached, started or used with these credentials."""

    exit_code = 5


class ArchiveError(SbenchError):
    """A run directory cannot be read or written."""

    exit_code = 8


class CostError(SbenchError):
    """A job would cost more than the user allows, or has come to do so."""

    exit_code = 12


class OperationError(SbenchError):
    """One try of one storage request failed.

    Parameters
    ----------
    message
        What happened; credentials of ours are left out.
    status
        HTTP status; None when there was no answer.
    hint
        As in ``SbenchError``.
    """

    code: ClassVar[str] = "error"
    """The word that goes into records."""
    retryable: ClassVar[bool] = False
    """Whether the same request may succeed a moment later."""

    def __init__(self, message: str, *, status: int | None = None, hint: str = "") -> None:
        super().__init__(one_line(without_secrets(message)), hint=hint)
        self.status = status


class NotFound(OperationError):
    """The object or the bucket does not exist."""

    code = "not_found"


class AccessDenied(OperationError):
    """The credentials are missing, wrong or not allowed to do this."""

    code = "access_denied"


class Throttled(OperationError):
    """The store asked us to slow down (S3 ``SlowDown``, HTTP 503 or 429)."""

    code = "throttled"
    retryable = True

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_s = retry_after_s
        """The store's ``Retry-After`` header; None when it sent none."""


class ServerFault(OperationError):
    """The store failed (500, 502, 504)."""

    code = "server_fault"
    retryable = True


class BadRequest(OperationError):
    """The store refuses the request for a reason that has no class of its own."""

    code = "bad_request"


class WrongRegion(OperationError):
    """The bucket lives elsewhere.

    Parameters
    ----------
    message, status
        As in ``OperationError``.
    region
        Where the store says that the bucket lives; None when it did not say.
    endpoint
        ``scheme://host`` of the ``Location`` header; None when there was none.
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
    """The connection was refused, reset or closed before the end of the answer."""

    code = "connection_lost"
    retryable = True


class TimedOut(OperationError):
    """No byte moved for longer than the timeout."""

    code = "timed_out"
    retryable = True


class DeadlineExceeded(OperationError):
    """The function ran out of its own time in the middle of a request."""

    code = "deadline"


def last_failure(error: BaseException) -> BaseException:
    """Return the failure of the last attempt where no time was left for another, else the error."""
    return (isinstance(error, DeadlineExceeded) and error.__cause__) or error


class BadResponse(OperationError):
    """The answer is not one that S3 gives."""

    code = "bad_response"
    retryable = True


class Corrupt(OperationError):
    """The store delivered other bytes than were written."""

    code = "corrupt"


def one_line(text: str) -> str:
    """Return the words of a store, or of a library, as one line that can be shown."""
    if len(text) <= _MOST_CHARACTERS and text.isprintable():
        return text
    shown = text[:_MOST_CHARACTERS]
    return "".join(each if each.isprintable() else " " for each in shown)


_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_MEMORY: Final = frozenset({errno.ENOMEM, errno.EAGAIN})


def shortage(cause: BaseException) -> SbenchError | None:
    """Return the error that stands for something this machine has too little of.

    Parameters
    ----------
    cause
        What Python raised.

    Returns
    -------
    SbenchError or None
        None if it is something else.

    Examples
    --------
    >>> str(shortage(OSError(28, "No space left on device", "keys.txt")))
    'cannot write keys.txt: No space left on device'
    """
    number = cause.errno if isinstance(cause, OSError) else None
    if isinstance(cause, OSError) and number in _DISK:
        what = "the output" if cause.filename is None else cause.filename
        return ArchiveError(f"cannot write {what}: {cause.strerror}", hint="make room")
    if number in _FILES:
        return ExecutorError(
            "too many open files for the limit of this process",
            hint="raise it with `ulimit -n`, or lower `concurrency`",
        )
    # Threads, and the loader of libraries, say it in words alone.
    thread = isinstance(cause, RuntimeError) and str(cause).startswith("can't start new thread")
    library = isinstance(cause, ImportError) and "failed to map segment" in str(cause)
    if thread or library or number in _MEMORY or isinstance(cause, MemoryError):
        return ExecutorError(
            "not enough memory, or too many processes, for the limits of this process",
            hint="lower `concurrency`, or raise the limits that `ulimit -a` shows",
        )
    return None
