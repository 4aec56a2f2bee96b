"""A command's lease on the embedded store; see ``keeper`` for the server."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import platformdirs

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import PluginError, StoreError
from serverless_bench.base.process import environment, past_proxies, without_credentials
from serverless_bench.base.units import NS_PER_S
from serverless_bench.base.user_files import own_directory
from serverless_bench.stores.keeper import LOCK, START_S, find_socket
from serverless_bench.stores.seaweedfs import FOLDERS

MARK: Final = "sbench-store"
"""Name of the file that marks a data directory."""
_TICK_S: Final = 0.02


def default_directory() -> Path:
    """Return the data directory of the embedded store: SBENCH_STORE_DIR, or the cache."""
    directory = os.environ.get("SBENCH_STORE_DIR")
    return Path(directory) if directory else _cached()


def _cached() -> Path:
    return platformdirs.user_cache_path("sbench") / "seaweedfs"


def claim(directory: Path) -> None:
    """Create the data directory of a store, or check that sbench has created it.

    The store writes its files over those of the same names, and ``clear`` deletes its folders, so
    neither may happen in a directory of the user's.

    Raises
    ------
    StoreError
        If the directory has other files, or as ``own_directory``.
    OSError
        If it cannot be created.
    """
    names = os.listdir(own_directory(directory))  # noqa: PTH208 - at once, as others may write
    if MARK in names:
        return
    if names and directory != _cached():
        raise StoreError(
            f"{directory} has files that are not of the embedded store",
            hint=f"set SBENCH_STORE_DIR to a new folder: {directory / 'sbench-store'}",
        )
    (directory / MARK).touch()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address and credentials of the embedded store during a lease."""

    endpoint_url: str
    bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    keeper_pid: int
    store_pid: int


class Lease:
    """A connection to the keeper; the store runs as long as it is open.

    Parameters
    ----------
    line
        The connection.
    keeper
        The keeper's process if this command started it.
    """

    def __init__(self, line: socket.socket, keeper: subprocess.Popen[bytes] | None) -> None:
        self._line = line
        self._answers = line.makefile("rb")
        self.address = Address(**self._read())
        if keeper is not None and keeper.pid != self.address.keeper_pid:
            # Another command was faster. This keeper would wait until that store exits, and
            # then run another one without any user.
            keeper.terminate()
            keeper.wait()
            keeper = None
        self._keeper = keeper

    @classmethod
    def take(cls, directory: Path, *, start: bool = True) -> Self | None:
        """Return a lease on the store in ``directory``, starting it if it does not run.

        Parameters
        ----------
        directory
            Data directory of the store.
        start
            False returns None instead of starting a store.

        Raises
        ------
        PluginError
            If the store's program is not installed.
        StoreError
            If it does not start.
        """
        keeper: subprocess.Popen[bytes] | None = None
        deadline_ns = monotonic_ns() + round(2 * START_S * NS_PER_S)
        while True:
            line = _connect(directory)
            if line is not None:
                # The keeper of a store that has just exited accepts connections until it exits,
                # too.
                with suppress(StoreError):
                    return cls(line, keeper)
                line.close()
            if not start:
                return None
            if keeper is None:
                keeper = _start_keeper(directory)
            if keeper.poll() is not None:
                raise _keeper_error(keeper, directory)
            if monotonic_ns() > deadline_ns:
                keeper.terminate()
                raise StoreError(f"the embedded store in {directory} does not start")
            sleep(_TICK_S)

    def ask(self, request: str, **more: int) -> dict[str, Any]:
        """Send a request to the keeper, and return the response.

        Raises
        ------
        StoreError
            If the request failed, or the keeper has exited.
        """
        with _ended_if_broken():
            self._line.sendall(json.dumps({"do": request, **more}).encode() + b"\n")
        answer = self._read()
        if "error" in answer:
            raise StoreError(f"the embedded store did not {request}: {answer['error']}")
        return answer

    def release(self) -> None:
        """Release the lease, and wait for the end of the store if it was the last one."""
        try:
            last = self.ask("status")["last"]
        except StoreError:
            last = True
        with suppress(OSError), self._line, self._answers:
            self._line.shutdown(socket.SHUT_WR)
            # The keeper disconnects immediately, or when the store exits after the last lease.
            # Its process remains a zombie until the command that started it has waited for it.
            self._answers.read()
        if last and self._keeper is not None:
            self._keeper.wait()

    def _read(self) -> dict[str, Any]:
        with _ended_if_broken():
            answer = self._answers.readline()
            if not answer.endswith(b"\n"):
                raise BrokenPipeError
        return dict(json.loads(answer))


@contextmanager
def _ended_if_broken() -> Iterator[None]:
    """Raise ``StoreError`` if the connection to the keeper breaks."""
    try:
        yield
    except OSError as exc:
        raise StoreError("the embedded store ended", hint="try again") from exc


@contextmanager
def embedded_store(directory: Path | None = None) -> Iterator[Lease]:
    """Start or share the embedded store for the length of a block.

    Inside the block, the environment of this process and its children contains the store's
    credentials, because all clients look for them there.
    """
    lease = Lease.take(directory or default_directory())
    if lease is None:
        raise StoreError("the embedded store does not run")
    credentials = {
        "AWS_ACCESS_KEY_ID": lease.address.access_key,
        "AWS_SECRET_ACCESS_KEY": lease.address.secret_key,
        "AWS_SECURITY_TOKEN": None,
        "AWS_SESSION_TOKEN": None,
    }
    try:
        with environment({**past_proxies(), **credentials}):
            yield lease
    finally:
        lease.release()


@contextmanager
def loading(notes: dict[str, Any] | None = None) -> Iterator[None]:
    """Register as a command that loads the embedded store, for the length of a block.

    Parameters
    ----------
    notes
        Receives ``neighbours`` if other commands loaded the store at the same time:
        ``commands``, their highest number, and ``shared_s``. It is not set if the store has exited.
    """
    lease = None
    with suppress(OSError, StoreError):
        lease = Lease.take(default_directory(), start=False)
        if lease is not None:
            lease.ask("begin", now_ns=monotonic_ns())
    try:
        yield
    finally:
        if lease is not None:
            with suppress(OSError, StoreError):
                answer = lease.ask("end", now_ns=monotonic_ns())
                if notes is not None and answer["commands"]:
                    shared_s = answer["shared_ns"] / NS_PER_S
                    notes["neighbours"] = {"commands": answer["commands"], "shared_s": shared_s}
            lease.release()


def kept_bytes(directory: Path) -> int:
    """Return the disk usage of the embedded store in bytes."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def clear(directory: Path) -> None:
    """Delete all objects of the embedded store in ``directory``.

    Raises
    ------
    StoreError
        If it is running, or files cannot be deleted, or not all are the store's.
    """
    try:
        claim(directory)
        with (directory / LOCK).open("a") as lock:
            # Hold the keeper's lock, so that no keeper can start a store at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in FOLDERS:
                if (directory / name).exists():
                    shutil.rmtree(directory / name)
    except BlockingIOError:
        raise StoreError(
            "the embedded store is running and cannot be deleted",
            hint="sbench store stop, and wait for the commands that use it",
        ) from None
    except OSError as exc:
        raise StoreError(f"cannot empty {directory}: {exc.strerror}") from exc


def _connect(directory: Path) -> socket.socket | None:
    """Return a connection to the keeper of a data directory; None if there is none."""
    if not directory.exists():
        return None
    # A file of another user could contain the address of that user's keeper.
    address = find_socket(own_directory(directory))
    if address is None:
        return None
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(str(address))
    except (FileNotFoundError, ConnectionRefusedError):
        line.close()
        return None
    return line


def _start_keeper(directory: Path) -> subprocess.Popen[bytes]:
    try:
        claim(directory)
        with (directory / "keeper.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "serverless_bench.stores.keeper", str(directory)],
                env=without_credentials(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
    except OSError as exc:
        raise StoreError(
            f"cannot keep the embedded store in {directory}: {exc.strerror}",
            hint="set SBENCH_STORE_DIR to a directory on a disk with room",
        ) from exc


def _keeper_error(keeper: subprocess.Popen[bytes], directory: Path) -> Exception:
    log = directory / "keeper.log"
    last = (log.read_text(encoding="utf-8", errors="replace").splitlines() or [""])[-1]
    with suppress(ValueError, KeyError, TypeError):
        error = json.loads(last)
        kind = PluginError if keeper.returncode == PluginError.exit_code else StoreError
        return kind(error["message"], hint=error["hint"])
    if not last:
        return StoreError(
            f"the embedded store did not start, without a message; {directory} may be full",
            hint="make room, or set SBENCH_STORE_DIR to a directory on a disk with room",
        )
    return StoreError(f"the embedded store did not start: {last}", hint=f"see {log}")
