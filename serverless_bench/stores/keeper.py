"""The process that runs an embedded store as long as commands use it.

Each ``sbench`` command that needs the store holds a connection to the keeper's Unix
socket. When the last one closes, even by the death of a process, the keeper terminates
the store and exits; ``sbench store start`` pins it until ``sbench store stop``. A file lock
limits a data directory to one keeper, so concurrent commands share one store.

Messages on the socket are JSON lines::

    keeper:   {"endpoint_url": ..., "bucket": ..., "access_key": ..., "secret_key": ...}
    command:  {"do": "pin"} | {"do": "unpin"} | {"do": "reclaim"} | {"do": "status"}
    keeper:   {"done": "pin", "last": true, "others": 0}
    command:  {"do": "begin", "now_ns": 7}
    command:  {"do": "end", "now_ns": 9}
    keeper:   {"done": "end", ..., "commands": 1, "shared_ns": 2}
    keeper:   {"error": "FileNotFoundError: ..."}

``last`` is true if the store will be terminated with this connection. Between ``begin`` and
``end`` a command loads the store: ``commands`` is the highest number of other commands with
concurrent load, and ``shared_ns`` the time with at least one. A request that fails returns its
error. The store's credentials are created at each start and never written to disk: any process
that can open the socket receives them. The socket is in a directory with a random name and
without access for other users; commands read its path from a file in the data directory.
"""

import fcntl
import json
import os
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Hashable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import SbenchError, StoreError
from serverless_bench.base.fork_server import die_with
from serverless_bench.base.units import NS_PER_S
from serverless_bench.base.user_files import make_private_directory, own_directory
from serverless_bench.stores.direct import answers_as_own
from serverless_bench.stores.seaweedfs import SeaweedFS, remove_socket

LOCK: Final = "lock"
"""Name of the lock file in the data directory."""
ADDRESS: Final = "keeper.json"
"""Name of the file in the data directory with the keeper's socket and the temporary files."""
START_S: Final = 30.0
_POLITE_S: Final = 3.5
"""Time until SIGKILL: the processes of a dead driver have to be gone after 5 s."""
_TICK_S: Final = 0.05
_ATTEMPTS: Final = 3
_PRIVATE: Final = "sbench-store-"
_SOCKET: Final = "keeper"
Span = tuple[int, int]
"""Start and end, in nanoseconds of the machine's monotonic clock."""


def main(directory: Path) -> None:
    """Run the store in ``directory`` for commands that connect to the socket.

    Raises
    ------
    StoreError
        If the store does not start.
    """
    # Ctrl-C in the terminal is for the command; the keeper exits after the last command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # The store's files must not be readable by other users.
    os.umask(0o077)
    directory = own_directory(directory).resolve()
    with (directory / LOCK).open("a") as lock:
        # A keeper that is shutting down holds the lock until the store has exited.
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A keeper that was killed has not removed any files.
        _remove_traces(directory)
        private = make_private_directory(_PRIVATE)
        try:
            keys = {"access_key": secrets.token_hex(10), "secret_key": secrets.token_hex(20)}
            store, process = _start(directory, private, keys)
            try:
                hello = {
                    "endpoint_url": store.endpoint_url,
                    "bucket": store.bucket,
                    "keeper_pid": os.getpid(),
                    "store_pid": process.pid,
                    **keys,
                }
                _CommandServer(store, hello, private / _SOCKET).serve(process)
            finally:
                # A command that connects now starts another keeper, which waits for the lock.
                (private / _SOCKET).unlink(missing_ok=True)
                _end(process)
        finally:
            _remove_traces(directory)
            shutil.rmtree(private, ignore_errors=True)


def _start(
    directory: Path, private: Path, keys: dict[str, str]
) -> tuple[SeaweedFS, subprocess.Popen[bytes]]:
    log = directory / "store.log"
    # The server accepts only these credentials.
    own = {
        "AWS_ACCESS_KEY_ID": keys["access_key"],
        "AWS_SECRET_ACCESS_KEY": keys["secret_key"],
    }
    others = {name: value for name, value in os.environ.items() if not name.startswith("WEED_")}
    for _ in range(_ATTEMPTS):
        # Use new ports for each attempt: another process may have taken one in the meantime.
        store = SeaweedFS(directory, private)
        sockets = [str(path) for path in store.sockets()]
        address = {"socket": str(private / _SOCKET), "leaves": sockets}
        (directory / ADDRESS).write_text(json.dumps(address), encoding="utf-8")
        with log.open("wb") as out:
            process = subprocess.Popen(
                store.command(),
                # Another directory could contain a security.toml of another user.
                cwd=private,
                env={**others, **own, **store.environment()},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - there are no threads here
            )
        if _await_answer(store, process):
            return store, process
        _end(process)
        for path in store.sockets():
            remove_socket(path)
    raise StoreError(f"the embedded store did not start: see {log}")


def find_socket(directory: Path) -> Path | None:
    """Return the socket of the keeper of a data directory, if one is or was running."""
    address = _read_address(directory)
    return None if address is None else Path(address["socket"])


def _read_address(directory: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads((directory / ADDRESS).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        # The file does not exist yet, or is being written.
        return None


def _remove_traces(directory: Path) -> None:
    """Delete the files of keeper and store outside of the data directory."""
    address = _read_address(directory)
    if address is None:
        return
    for path in address["leaves"]:
        remove_socket(Path(path))
    private = Path(address["socket"]).parent
    if private.name.startswith(_PRIVATE):
        shutil.rmtree(private, ignore_errors=True)
    (directory / ADDRESS).unlink(missing_ok=True)


class _CommandServer:
    """Serves the connections of commands."""

    def __init__(self, store: SeaweedFS, hello: dict[str, Any], address: Path) -> None:
        self._store = store
        self._hello = hello
        self._commands: set[socket.socket] = set()
        self._wanted = True
        """Whether to wait for the command that started this process, for a limited time."""
        self._pinned = False
        self._loads = StoreLoads()
        self._address = address
        self._left: socket.socket | None = None
        """Closed connection; the last one stays open until this process exits."""
        self._selector = selectors.DefaultSelector()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(address))
        self._server.listen(128)
        self._selector.register(self._server, selectors.EVENT_READ, self._accept)

    def serve(self, process: subprocess.Popen[bytes]) -> None:
        """Return when no command needs the store any more, or when the store has exited."""
        began_ns = monotonic_ns()
        while process.poll() is None and (self._wanted or self._pinned or self._commands):
            if not self._commands and not self._address.exists():
                # The socket was deleted with the user's session: no command can connect any more.
                break
            for key, _ in self._selector.select(0.5):
                key.data(key.fileobj)
            if self._commands or monotonic_ns() - began_ns > START_S * NS_PER_S:
                self._wanted = False
        self._server.close()

    def _accept(self, server: socket.socket) -> None:
        try:
            command, _ = server.accept()
        except OSError:
            # Out of file descriptors: wait until another command has disconnected.
            sleep(_TICK_S)
            return
        self._commands.add(command)
        self._selector.register(command, selectors.EVENT_READ, self._read_command)
        _send(command, self._hello)

    def _read_command(self, command: socket.socket) -> None:
        try:
            data = command.recv(1 << 12)
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(command)
            self._commands.discard(command)
            # A command that was killed has not sent ``end``.
            self._loads.end(command, monotonic_ns())
            self._left = command
            if self._commands or self._pinned:
                command.close()
            return
        try:
            answer = self._answer(command, json.loads(data))
        except Exception as exc:  # noqa: BLE001 - the store is that of other commands, too
            answer = {"error": f"{type(exc).__name__}: {exc}"}
            sys.stderr.write(f"{data.decode(errors='replace').strip()}: {answer['error']}\n")
        _send(command, answer)

    def _answer(self, command: socket.socket, request: dict[str, Any]) -> dict[str, Any]:
        """Execute a request of a command, and return the response."""
        load_of_command = dict[str, Any]()
        match request["do"]:
            case "pin" | "unpin" as wanted:
                self._pinned = wanted == "pin"
            case "begin":
                self._loads.begin(command, request["now_ns"])
            case "end":
                load_of_command["commands"], load_of_command["shared_ns"] = self._loads.end(
                    command, request["now_ns"]
                )
            case "reclaim":
                # The store copies data, which slows down other commands.
                self._loads.begin(self, monotonic_ns())
                try:
                    self._store.reclaim()
                finally:
                    self._loads.end(self, monotonic_ns())
            case _:  # status
                pass
        # A command that loads the store has a second connection for that.
        others = len(self._commands - {command} - self._loads.since.keys())
        last = not (others or self._pinned)
        return {"done": request["do"], "last": last, "others": others, **load_of_command}


def _send(command: socket.socket, message: dict[str, Any]) -> None:
    # A closed connection is detected by the end of the stream at the next read.
    with suppress(BrokenPipeError, ConnectionResetError):
        command.sendall(json.dumps(message).encode() + b"\n")


def _await_answer(store: SeaweedFS, process: subprocess.Popen[bytes]) -> bool:
    """Return whether the store responds; False if it has exited or the time limit has passed."""
    deadline_ns = monotonic_ns() + round(START_S * NS_PER_S)
    while process.poll() is None and monotonic_ns() < deadline_ns:
        # An error response to a request without a signature is sufficient.
        if answers_as_own(store.endpoint_url, timeout_s=1):
            return True
        sleep(_TICK_S)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_POLITE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class StoreLoads:
    """Tracks the commands that load the store, as long as their times can overlap."""

    def __init__(self) -> None:
        self.since: dict[Hashable, int] = {}
        """Commands that load the store now, and the start of each."""
        self._ended: list[Span] = []

    def begin(self, who: Hashable, now_ns: int) -> None:
        """Record that a command starts to load the store."""
        self.since[who] = now_ns

    def end(self, who: Hashable, now_ns: int) -> tuple[int, int]:
        """Record the end of a command's load; return its ``overlap``."""
        own = self.since.pop(who, now_ns), now_ns
        others = [*self._ended, *((since, now_ns) for since in self.since.values())]
        oldest = min(self.since.values(), default=now_ns)
        self._ended = [span for span in (*self._ended, own) if span[1] > oldest]
        return overlap(own, others)


def overlap(own: Span, others: Iterable[Span]) -> tuple[int, int]:
    """Return the largest number of other spans at one time within a span, and their total time.

    Parameters
    ----------
    own
        The span.
    others
        Spans that may overlap with it and with each other.
    """
    within = ((max(own[0], begin), min(own[1], end)) for begin, end in others)
    inside = [(begin, end) for begin, end in within if begin < end]
    changes = [(begin, 1) for begin, _ in inside] + [(end, -1) for _, end in inside]
    count = most = shared_ns = since_ns = 0
    for now_ns, change in sorted(changes):
        if count:
            shared_ns += now_ns - since_ns
        count, since_ns = count + change, now_ns
        most = max(most, count)
    return most, shared_ns


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except SbenchError as exc:
        sys.stderr.write(json.dumps({"message": str(exc), "hint": exc.hint}) + "\n")
        sys.exit(exc.exit_code)
