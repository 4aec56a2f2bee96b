"""A shortage of resources on this machine is not a bug, and the message says what to do."""

import errno
import os

import pytest

from serverless_bench.base.errors import shortage
from tests.tables import each_row


def refused(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)


@each_row(
    ("cause", "code", "text"),
    [
        (refused(errno.ENOSPC, "keys"), 8, "cannot write keys: No space left on device"),
        (refused(errno.EDQUOT), 8, "cannot write the output: Disk quota exceeded"),
        (refused(errno.EROFS, "w"), 8, "cannot write w: Read-only file system"),
        (refused(errno.EMFILE), 4, "too many open files for the limit of this process"),
        (MemoryError(), 4, "not enough memory, or too many processes"),
        (refused(errno.EAGAIN), 4, "not enough memory, or too many processes"),
        (RuntimeError("can't start new thread"), 4, "not enough memory, or too many processes"),
        (ImportError("x.so: failed to map segment from shared object"), 4, "not enough memory"),
    ],
)
def test_a_shortage_is_reported(cause: Exception, code: int, text: str) -> None:
    error = shortage(cause)
    assert error is not None
    assert (error.exit_code, text in str(error)) == (code, True)
    assert error.hint


@pytest.mark.parametrize(
    "cause", [refused(errno.ENOENT), RuntimeError("no"), ImportError("no"), ValueError()]
)
def test_anything_else_is_not(cause: Exception) -> None:
    assert shortage(cause) is None
