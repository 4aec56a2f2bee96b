"""LocalStack in a separate Python environment, as a child process on loopback only.

It pins a hundred packages, some of them in versions that conflict with those of sbench, so it is
never installed in the same environment. The pins are next to this file, with hashes: newer
releases of LocalStack's dependencies break it, and newer releases of LocalStack need an account.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Final

import platformdirs

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import StoreError, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.base.user_files import held_directory, own_directory
from serverless_bench.stores.direct import open_direct

VERSIONS: Final = {"3.11": "4.13.1", "3.12": "4.13.1", "3.13": "2026.3.0"}
"""Last LocalStack that runs on each Python without an account; tested on each of them."""
_DATA: Final = files("serverless_bench.features.localstack")
_PLUGIN: Final = "sbench_executor"
_COPIED: Final = {
    f"{_PLUGIN}.py": _DATA.joinpath("executor.py"),
    "sbench_gateway.py": _DATA.joinpath("gateway.py"),
    **{
        # Without __init__.py these folders are namespace packages.
        f"serverless_bench/{name}": files("serverless_bench").joinpath(name)
        for name in ("features/loopback/listener.py", "base/callers.py")
    },
}
"""Modules that LocalStack loads from sbench, by their names there."""
_ENTRY_POINTS: Final = f"""\
[localstack.lambda.runtime_executor]
sbench = {_PLUGIN}:SbenchPlugin
[localstack.runtime.server]
sbench = sbench_gateway:SbenchServerPlugin
"""
_METADATA: Final = f"Metadata-Version: 2.1\nName: {_PLUGIN.replace('_', '-')}\nVersion: 0\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStackInstallation:
    """A LocalStack that can be started."""

    version: str
    python: Path
    """Interpreter of the environment."""


def default_directory() -> Path:
    """Return the directory of LocalStack: SBENCH_LOCALSTACK_DIR, or the user's cache."""
    directory = os.environ.get("SBENCH_LOCALSTACK_DIR")
    usual = platformdirs.user_cache_path("sbench") / "localstack"
    return Path(directory).absolute() if directory else usual


def prepare(root: Path, report: Callable[[str], None] = lambda _: None) -> LocalStackInstallation:
    """Return the LocalStack in ``root``, and install it there if necessary.

    Parameters
    ----------
    root
        Directory for the installation; the user's is ``default_directory``.
    report
        Function that receives a message before a slow step.

    Raises
    ------
    StoreError
        If there is no suitable Python, or it cannot be installed.
    """
    python, version = _find_python()
    pins = _DATA.joinpath(f"{version}.txt").read_bytes()
    home = root / f"{version}-{hashlib.blake2b(pins + python.encode(), digest_size=6).hexdigest()}"
    try:
        # Files of another user in this directory would run as this user.
        own_directory(root)
        with (root / f"{home.name}.lock").open("a") as lock:
            # Two simultaneous commands install it only once.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (home / "complete").exists():
                report(f"installing LocalStack {version} in {home}")
                _install(python, version, home)
            _add_plugin(home)
    except OSError as exc:
        raise StoreError(
            f"cannot keep LocalStack in {root}: {exc.strerror}",
            hint="set SBENCH_LOCALSTACK_DIR to a directory on a disk with free space",
        ) from exc
    return LocalStackInstallation(version=version, python=home / "bin" / "python")


def _find_python() -> tuple[str, str]:
    """Return a Python supported by LocalStack, preferably this one, and the LocalStack for it."""
    this_version = sysconfig.get_python_version()
    if this_version in VERSIONS:
        return sys.executable, VERSIONS[this_version]
    for python, version in VERSIONS.items():
        path = shutil.which(f"python{python}")
        if path is not None and _is_python(path, python):
            return path, version
    raise StoreError(
        f"LocalStack needs Python {', '.join(VERSIONS)}, and none of them is installed",
        hint="install one of them; sbench itself does not have to move",
    )


def _install(python: str, version: str, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    pins = str(_DATA.joinpath(f"{version}.txt"))
    inside = str(home / "bin" / "python")
    uv = shutil.which("uv", path=Path(sys.executable).parent) or shutil.which("uv")
    if uv:
        flags = ["--without-pip"]
        # Modules are compiled when they are loaded: of eleven thousand, a start needs one in six.
        install = [uv, "pip", "install", "--python", inside]
    else:
        flags = []
        install = [inside, "-I", "-m", "pip", "install", "--disable-pip-version-check"]
    _do([python, "-I", "-m", "venv", *flags, str(home)], home.parent)
    _do([*install, "--require-hashes", "-r", pins], home.parent)
    (home / "complete").touch()


def _add_plugin(home: Path) -> None:
    """Install the current versions of the executor and the server."""
    packages = next((home / "lib").glob("python*/site-packages"))
    metadata_directory = packages / f"{_PLUGIN}-0.dist-info"
    for path, text in (
        *((packages / name, source.read_text("utf-8")) for name, source in _COPIED.items()),
        (metadata_directory / "METADATA", _METADATA),
        (metadata_directory / "entry_points.txt", _ENTRY_POINTS),
    ):
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _do(command: list[str], folder: Path) -> None:
    completed = subprocess.run(
        command,
        # In this folder, neither a foreign uv.toml nor, with -I, a foreign module is loaded.
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if completed.returncode:
        last_line = (
            completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"]
        )[-1]
        raise StoreError(
            f"LocalStack cannot be installed: {last_line}",
            hint=f"it failed at: {' '.join(command[:5])}",
        )


def _is_python(program: str, version: str) -> bool:
    # A name on PATH may be a placeholder that runs nothing.
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    completed = subprocess.run(
        [program, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    return completed.stdout.strip() == version


START_S: Final = 120.0
"""Time limit for the start, in which it loads a thousand modules."""
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""LocalStack accepts any credentials; these belong to account 000000000000."""
REGION: Final = "us-east-1"
_SERVICES: Final = "cloudformation,cloudwatch,ec2,iam,lambda,logs,s3,sqs,sts"
"""Services that the template needs, with all dependencies."""
_VOLUME: Final = "sbench-localstack-"
# The child dies with its parent in all cases. It exits at once if its parent is no longer this
# process when it requests this.
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
        Process and port.
    log
        File for its output.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.endpoint_url = f"http://127.0.0.1:{port}"
        self._process = process
        self._log = log
        self._deadline_ns = monotonic_ns() + round(START_S * NS_PER_S)

    def ready(self) -> bool:
        """Return whether it responds.

        Raises
        ------
        StoreError
            If it has exited, or has been silent for too long.
        """
        is_ready = _responds(f"{self.endpoint_url}/_localstack/health")
        self.check()
        if not is_ready and monotonic_ns() > self._deadline_ns:
            raise StoreError(
                f"LocalStack does not respond after {START_S:g} s: {self._last_line()}",
                hint=f"see {self._log}",
            )
        return is_ready

    def check(self) -> None:
        """Raise if it has exited.

        Raises
        ------
        StoreError
            With the last line of its output.
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
    """Run LocalStack for the length of a block; at first, it may not respond yet.

    Parameters
    ----------
    installed
        Installation to run.
    port
        Port to listen on; 0 picks a free port.
    lambda_host
        URL of the host that runs the functions.
    log
        File for its output.

    Raises
    ------
    UsageError
        If the port is in use, or the log cannot be written.
    """
    port = _free(port)
    made = Path(tempfile.mkdtemp(prefix=_VOLUME))
    with held_directory(made, _VOLUME) as volume, _opened(log) as out:
        process = subprocess.Popen(
            [str(installed.python), "-c", _LAUNCH, str(os.getpid())],
            cwd=volume,
            env=_environment(volume, port, lambda_host),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the command, which may need LocalStack to clean up.
            start_new_session=True,
        )
        try:
            yield LocalStack(process, port, log)
        finally:
            # On SIGTERM it takes five seconds to save state that is never loaded.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _environment(volume: Path, port: int, lambda_host: str) -> dict[str, str]:
    """Return its complete environment, without the user's variables, which may be for AWS."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(volume),
        "LOCALSTACK_VOLUME_DIR": str(volume),
        # The default server listens on all addresses, whatever its settings; this one rejects
        # others.
        "GATEWAY_SERVER": "sbench",
        "GATEWAY_LISTEN": f"127.0.0.1:{port}",
        "LOCALSTACK_HOST": f"127.0.0.1:{port}",
        # LocalStack would otherwise download a certificate, send statistics, and serve DNS.
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "DISABLE_EVENTS": "1",
        "DNS_ADDRESS": "0",
        "SERVICES": _SERVICES,
        "LAMBDA_RUNTIME_EXECUTOR": "sbench",
        "LAMBDA_SYNCHRONOUS_CREATE": "1",
        # Allow for fifty simultaneous cold starts on two CPUs.
        "LAMBDA_RUNTIME_ENVIRONMENT_TIMEOUT": "120",
        "SBENCH_LAMBDA_HOST": lambda_host,
    }


def _free(port: int) -> int:
    try:
        with socket.create_server(("127.0.0.1", port)) as held:
            return int(held.getsockname()[1])
    except (OSError, OverflowError) as exc:
        raise UsageError(
            f"port {port} cannot be used: {exc}", hint="give another --port, or omit it"
        ) from exc


def _opened(log: Path) -> IO[bytes]:
    try:
        return log.open("wb")
    except OSError as exc:
        raise UsageError(f"cannot write --log {log}: {exc.strerror}") from exc


def _responds(url: str) -> bool:
    try:
        with open_direct(url, timeout_s=2) as response:
            return "services" in json.load(response)
    except (OSError, ValueError):
        return False
