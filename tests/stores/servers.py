"""Real S3 servers as child processes, each with an empty bucket called ``test``."""

import os
import socket
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3

from serverless_bench.driver.target import ensure
from serverless_bench.job.target import StoreProtocol, Target
from serverless_bench.stores.embedded import Lease
from tests.commands.processes import until
from tests.stores.built import S3S_FS, VERSITYGW, program

SCRIPTS = Path(sysconfig.get_path("scripts"))
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Server:
    endpoint_url: str
    bucket: str
    environment: Mapping[str, str]
    """Its credentials, where every client looks for them."""
    protocol: StoreProtocol = StoreProtocol.S3


def free_port() -> int:
    """Return a port for a server that cannot ask the kernel itself.

    A connection on it has just ended, so for a minute the kernel gives the port to nobody who
    does not name it, whatever other tests ask for.
    """
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = held.getsockname()
        with socket.create_connection(address) as ours:
            theirs, _ = held.accept()
            # Whoever closes first keeps the address.
            theirs.close()
            ours.recv(1)
    return int(address[1])


@contextmanager
def running(
    command: list[str], url: str, log: Path, more: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server; ``more`` is added to its environment."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(more or {})},
        )

    def ready() -> bool:
        assert process.poll() is None, log.read_text()
        return answers(url)

    try:
        until(ready)
        yield
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    try:
        DIRECT.open(url, timeout=1).close()
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except OSError:
        return False
    return True


@contextmanager
def credentials(environment: Mapping[str, str]) -> Iterator[None]:
    """Set these variables in the block.

    Only those that differ are touched: threads of a library may read others at any time.
    """
    before = dict(os.environ)
    os.environ.update(environment)
    # boto3 keeps the credentials of the first client of a process.
    boto3.DEFAULT_SESSION = None
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before.items() - os.environ.items())
        boto3.DEFAULT_SESSION = None


KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}


@contextmanager
def embedded(directory: Path) -> Iterator[Server]:
    """The embedded store, SeaweedFS, kept by a lease as long as the block."""
    lease = Lease.take(directory)
    assert lease is not None
    address = lease.address
    environment = {
        "AWS_ACCESS_KEY_ID": address.access_key,
        "AWS_SECRET_ACCESS_KEY": address.secret_key,
        "SBENCH_STORE_DIR": str(directory),
    }
    try:
        yield with_bucket(Server(address.endpoint_url, address.bucket, environment))
    finally:
        lease.release()


@contextmanager
def moto(scratch: Path) -> Iterator[Server]:
    """moto: a Python re-implementation of the AWS APIs."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [str(SCRIPTS / "moto_server"), "-H", "127.0.0.1", "-p", url.rpartition(":")[2]]
    with running(command, url, scratch / "moto.log"):
        yield with_bucket(Server(url, "test", KEYS))


@contextmanager
def rclone(scratch: Path) -> Iterator[Server]:
    """rclone: a Go program that serves a directory as S3."""
    address = f"127.0.0.1:{free_port()}"
    keys = ",".join(KEYS.values())
    data = scratch / "rclone"
    data.mkdir()
    command = [
        *(str(SCRIPTS / "rclone"), "serve", "s3", str(data), "--addr", address),
        *("--auth-key", keys, "--config", str(scratch / "rclone.conf"), "--vfs-cache-mode", "off"),
    ]
    with running(command, f"http://{address}", scratch / "rclone.log"):
        yield with_bucket(Server(f"http://{address}", "test", KEYS))


@contextmanager
def versitygw(scratch: Path) -> Iterator[Server]:
    """versitygw: a gateway in Go, here to a directory of files with extended attributes."""
    address = f"127.0.0.1:{free_port()}"
    data = scratch / "versitygw"
    data.mkdir()
    command = [
        *(str(program(VERSITYGW)), "--port", address, "--quiet", "--keep-alive"),
        *("--access", KEYS["AWS_ACCESS_KEY_ID"], "--secret", KEYS["AWS_SECRET_ACCESS_KEY"]),
        *("posix", str(data)),
    ]
    with running(command, f"http://{address}", scratch / "versitygw.log"):
        yield with_bucket(Server(f"http://{address}", "test", KEYS))


@contextmanager
def s3s_fs(scratch: Path) -> Iterator[Server]:
    """s3s-fs: the example of a Rust library for servers, on a directory of files."""
    host, port = "127.0.0.1", str(free_port())
    data = scratch / "s3s-fs"
    data.mkdir()
    command = [
        *(str(program(S3S_FS)), "--host", host, "--port", port),
        *("--access-key", KEYS["AWS_ACCESS_KEY_ID"]),
        *("--secret-key", KEYS["AWS_SECRET_ACCESS_KEY"], str(data)),
    ]
    with running(command, f"http://{host}:{port}", scratch / "s3s-fs.log"):
        yield with_bucket(Server(f"http://{host}:{port}", "test", KEYS))


@contextmanager
def loopback(*flags: str, log: Path) -> Iterator[Server]:
    """``sbench serve`` with ``flags``, a process of its own.

    It accepts any bucket; its output at the end is the last line of ``log``.
    """
    command = [sys.executable, "-m", "serverless_bench", "serve", *flags]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    try:
        assert first.startswith("serving at "), process.communicate()
        yield Server(first.split()[-1], "test", KEYS)
    finally:
        process.terminate()
        out, err = process.communicate()
        log.write_text(first + out)
    assert (process.returncode, err) == (0, "")


def with_bucket(server: Server) -> Server:
    with credentials(server.environment):
        ensure(Target(bucket=server.bucket, endpoint_url=server.endpoint_url))
    return server
