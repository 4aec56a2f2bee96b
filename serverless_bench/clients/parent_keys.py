"""Keys that a process gives to those it starts, over a Unix socket.

A thousand functions on one machine would run a ``credential_process`` a thousand times, and none
of them can ask for an MFA code.
"""

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from tempfile import TemporaryDirectory
from typing import Final

from serverless_bench.clients.environment import lasting_keys
from serverless_bench.clock import utc_stamp, wall_ns
from serverless_bench.units import NS_PER_S

_VARIABLE: Final = "SBENCH_PARENT_KEYS"
"""Environment variable with the path of the parent's socket."""
_LEASE_NS: Final = 20 * 60 * NS_PER_S
"""Children ask again after five minutes, 15 before the end (botocore's advisory refresh). The keys
are good for ten minutes or more when they get them (its mandatory refresh in the parent)."""
_ANSWER_S: Final = 120.0
"""Somebody may have to type an MFA code first."""


@contextmanager
def keys_for_children() -> Iterator[Mapping[str, str]]:
    """Give the keys of the AWS configuration to processes that are started within the block.

    Yields
    ------
    Mapping[str, str]
        Environment variables for them; empty where they inherit all that they need.
    """
    if _VARIABLE in os.environ or lasting_keys() is not None:
        yield {}
        return
    # Only this user may open what is in it.
    with TemporaryDirectory(prefix="sbench-keys-") as directory:
        path = Path(directory) / "socket"
        with _KeyServer(str(path), _Answer) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield {_VARIABLE: str(path)}
            finally:
                server.shutdown()


def has_parent() -> bool:
    """Tell whether the process that started this one gives it keys."""
    return _VARIABLE in os.environ


def ask_parent() -> dict[str, str] | None:
    """Return credentials as botocore's ``create_from_metadata`` takes them; None if there are none.

    Raises
    ------
    OSError
        If the parent has not answered, or could not get them.
    """
    with socket.socket(socket.AF_UNIX) as parent:
        parent.settimeout(_ANSWER_S)
        parent.connect(os.environ[_VARIABLE])
        with parent.makefile("rb") as stream:
            answer: dict[str, str] | None = json.loads(stream.read())
    if answer is not None and "error" in answer:
        raise ConnectionError(answer["error"])
    return answer


class _KeyServer(ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    # A thousand functions may ask at once.
    request_queue_size = 4096


class _Answer(StreamRequestHandler):
    """Writes the keys of the moment, or why there are none, and hangs up."""

    def handle(self) -> None:
        self.wfile.write(json.dumps(_keys_of_the_moment()).encode())


def _keys_of_the_moment() -> Mapping[str, str | None] | None:
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - slow to load, and seldom asked

    from serverless_bench.clients.aws_credentials import AwsSession  # noqa: PLC0415

    try:
        credentials = AwsSession().get_credentials()
        if credentials is None:
            return None
        frozen = credentials.get_frozen_credentials()
    except BotoCoreError as exc:
        return {"error": str(exc)}
    return {
        "access_key": frozen.access_key,
        "secret_key": frozen.secret_key,
        "token": frozen.token,
        "expiry_time": utc_stamp(wall_ns() + _LEASE_NS),
    }
