"""LocalStack as a child process, on loopback only, with nothing that outlives it."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import StoreError, UsageError
from serverless_bench.lab.localstack.environment import LocalStackInstallation
from serverless_bench.stores.direct import open_direct
from serverless_bench.units import NS_PER_S

START_S: Final = 120.0
"""It loads a thousand modules."""
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""Any are taken; these are account 000000000000's."""
REGION: Final = "us-east-1"
_SERVICES: Final = "cloudformation,cloudwatch,ec2,iam,lambda,logs,s3,sqs,sts"
"""What the template needs, and what those need."""
_VOLUME: Final = "sbench-localstack-"
# It dies with us, however we die; nobody but us is to be its parent when it asks for that.
_LAUNCH: Final = """\
import ctypes, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv.pop()):
    os._exit(1)
runpy.run_module("localstack.runtime.main", run_name="__main__")
"""


class LocalStack:
    """A LocalStack that was started.

    Parameters
    ----------
    process, port
        Of it.
    log
        What it says goes there.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.endpoint_url = f"http://127.0.0.1:{port}"
        self._process = process
        self._log = log
        self._deadline_ns = monotonic_ns() + round(START_S * NS_PER_S)

    def ready(self) -> bool:
        """Tell whether it answers.

        Raises
        ------
        StoreError
            If it has ended, or has been silent for too long.
        """
        answers = _answers(f"{self.endpoint_url}/_localstack/health")
        self.check()
        if not answers and monotonic_ns() > self._deadline_ns:
            raise StoreError(
                f"LocalStack does not answer after {START_S:g} s: {self._last_line()}",
                hint=f"see {self._log}",
            )
        return answers

    def check(self) -> None:
        """Raise if it has ended.

        Raises
        ------
        StoreError
            With the last line that it wrote.
        """
        if self._process.poll() is not None:
            raise StoreError(
                f"LocalStack ended with {self._process.returncode}: {self._last_line()}",
                hint=f"see {self._log}",
            )

    def _last_line(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace")
        return next((line for line in reversed(text.splitlines()) if line.strip()), "")


@contextmanager
def started(
    installed: LocalStackInstallation, *, port: int, lambda_host: str, log: Path
) -> Iterator[LocalStack]:
    """Run LocalStack for the length of a block; it may not answer yet.

    Parameters
    ----------
    installed
        Which one.
    port
        Where it listens; 0 takes a free one.
    lambda_host
        URL of the host that runs its functions.
    log
        File for what it says.

    Raises
    ------
    UsageError
        If the port is taken, or the log cannot be written.
    """
    port = _free(port)
    with _volume() as volume, _opened(log) as out:
        process = subprocess.Popen(  # noqa: S603 - our own environment
            [str(installed.python), "-c", _LAUNCH, str(os.getpid())],
            cwd=volume,
            env=_environment(volume, port, lambda_host),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the command: it may want to tidy up with LocalStack still there.
            start_new_session=True,
        )
        try:
            yield LocalStack(process, port, log)
        finally:
            # On SIGTERM it takes five seconds to save what is never loaded.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _environment(volume: Path, port: int, lambda_host: str) -> dict[str, str]:
    """Return its whole environment: nothing of the user's, who may mean AWS with it."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(volume),
        "LOCALSTACK_VOLUME_DIR": str(volume),
        # Its usual server listens on every address, whatever its settings; ours refuses others.
        "GATEWAY_SERVER": "sbench",
        "GATEWAY_LISTEN": f"127.0.0.1:{port}",
        "LOCALSTACK_HOST": f"127.0.0.1:{port}",
        # It would fetch a certificate, report us to its makers, and serve names.
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "DISABLE_EVENTS": "1",
        "DNS_ADDRESS": "0",
        "SERVICES": _SERVICES,
        "LAMBDA_RUNTIME_EXECUTOR": "sbench",
        "LAMBDA_SYNCHRONOUS_CREATE": "1",
        # Fifty cold starts at once, on two processors.
        "LAMBDA_RUNTIME_ENVIRONMENT_TIMEOUT": "120",
        "SBENCH_LAMBDA_HOST": lambda_host,
    }


def _free(port: int) -> int:
    try:
        with socket.create_server(("127.0.0.1", port)) as held:
            return int(held.getsockname()[1])
    except (OSError, OverflowError) as exc:
        raise UsageError(
            f"port {port} cannot be used: {exc}", hint="name another --port, or none"
        ) from exc


def _opened(log: Path) -> IO[bytes]:
    try:
        return log.open("wb")
    except OSError as exc:
        raise UsageError(f"cannot write --log {log}: {exc.strerror}") from exc


@contextmanager
def _volume() -> Iterator[Path]:
    """Yield a directory for what it keeps; gone afterwards, or at the next start."""
    for old in Path(tempfile.gettempdir()).glob(f"{_VOLUME}*"):
        _sweep(old)
    volume = Path(tempfile.mkdtemp(prefix=_VOLUME))
    try:
        with (volume / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield volume
    finally:
        shutil.rmtree(volume, ignore_errors=True)


def _sweep(volume: Path) -> None:
    """Delete a directory whose command was killed."""
    # Not if it is in use, or being made at this moment.
    with suppress(OSError):
        # Nor somebody else's: its lock could be a link to a file of ours.
        if volume.lstat().st_uid == os.getuid():
            with (volume / "lock").open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(volume, ignore_errors=True)


def _answers(url: str) -> bool:
    try:
        with open_direct(url, timeout_s=2) as response:
            return "services" in json.load(response)
    except (OSError, ValueError):
        return False
