"""Credentials that a process passes to its children over a Unix socket.

Otherwise a thousand functions on a machine would run a ``credential_process`` a thousand times, and
none of them can prompt for an MFA code.
"""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import Final

from serverless_bench.base.clock import utc_stamp, wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.base.user_files import held_directory, make_private_directory

_VARIABLE: Final = "SBENCH_PARENT_KEYS"
"""Environment variable with the path of the parent's socket."""
_PREFIX: Final = "sbench-keys-"
_LEASE_NS: Final = 20 * 60 * NS_PER_S
"""Children refresh after five minutes, 15 before the expiry (botocore's advisory refresh). The keys
are valid for ten minutes or more when children get them (mandatory refresh in the parent)."""
_ANSWER_S: Final = 120.0
"""Long enough for a user to type an MFA code."""
Answer = Mapping[str, str | None] | None
"""Keys by their names in botocore's metadata, or an ``error``; None if there are none."""


@contextmanager
def serving_keys(find: Callable[[], Answer]) -> Iterator[Mapping[str, str]]:
    """Serve keys to the processes started within the block.

    Parameters
    ----------
    find
        Returns the current keys; called in a thread for each request.

    Yields
    ------
    Mapping[str, str]
        Environment variables for these processes.
    """

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(json.dumps(find()).encode())

    with (
        held_directory(make_private_directory(_PREFIX), _PREFIX) as directory,
        _KeyServer(str(directory / "socket"), Handler) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {_VARIABLE: str(server.server_address)}
        finally:
            server.shutdown()


class _KeyServer(ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    # A thousand functions may connect at the same time.
    request_queue_size = 4096


def has_parent() -> bool:
    """Return whether the parent process provides keys."""
    return _VARIABLE in os.environ


def ask_parent() -> dict[str, str] | None:
    """Return the parent's keys for botocore's ``create_from_metadata``; None if it has none.

    Raises
    ------
    OSError
        If the parent does not answer, or could not get them.
    """
    with socket.socket(socket.AF_UNIX) as parent:
        parent.settimeout(_ANSWER_S)
        parent.connect(os.environ[_VARIABLE])
        with parent.makefile("rb") as stream:
            keys: dict[str, str] | None = json.loads(stream.read())
    if keys is None:
        return None
    if "error" in keys:
        raise ConnectionError(keys["error"])
    return {**keys, "expiry_time": utc_stamp(wall_ns() + _LEASE_NS)}
