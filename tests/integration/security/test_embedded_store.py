"""The embedded store serves this user: no other user can use its ports, sockets and files."""

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from serverless_bench.driver.boto import open_s3
from serverless_bench.job.target import Target
from serverless_bench.stores.embedded import Lease
from serverless_bench.stores.seaweedfs import write_certificate
from tests.commands.other_user import Stranger
from tests.commands.processes import listening, unix_sockets, until
from tests.stores.servers import Server, credentials, with_bucket

pytestmark = pytest.mark.on_change("serverless_bench/stores")

ASKED = [
    ("GET", "/"),
    ("GET", "/buckets/"),
    ("GET", "/buckets/sbench/secret"),
    ("GET", "/buckets?metadata=true"),
    ("GET", "/sbench/secret"),
    ("GET", "/sbench?list-type=2"),
    ("GET", "/dir/assign"),
    ("GET", "/dir/lookup?volumeId=1"),
    ("GET", "/dir/status"),
    ("GET", "/vol/status"),
    ("GET", "/vol/vacuum?garbageThreshold=0.001"),
    ("GET", "/cluster/status"),
    ("GET", "/col/delete?collection=sbench"),
    ("GET", "/1,01637037d6"),
    ("GET", "/debug/pprof/"),
    ("GET", "/healthz"),
    ("GET", "/status"),
    ("GET", "/metrics"),
    ("GET", "/api/config"),
    ("GET", "/ui/index.html"),
    ("POST", "/buckets/sbench/planted"),
    ("PUT", "/buckets/sbench/secret"),
    ("DELETE", "/buckets/sbench/secret"),
    ("PUT", "/sbench/planted"),
    ("DELETE", "/sbench/secret"),
    ("POST", "/submit"),
    ("POST", "/1,01637037d6"),
    ("DELETE", "/1,01637037d6"),
    ("POST", "/api/users"),
]
SHARED = Path("/tmp")  # noqa: S108 - where SeaweedFS itself puts sockets
PORTS = 10
SOCKETS = 7
HARMLESS = {"GET /healthz", "GET /metrics", "GET /status"}
"""Harmless answers of a port to anybody: that it runs, its version, disk usage, counts."""


@pytest.fixture(scope="module")
def lease(open_place: Path) -> Iterator[Lease]:
    taken = Lease.take(open_place / "store")
    assert taken is not None
    yield taken
    taken.release()


@pytest.fixture(scope="module")
def ports(lease: Lease) -> list[int]:
    """All ports: some are opened after the port for S3 answers."""
    until(lambda: len(listening(lease.address.store_pid)) >= PORTS)
    return listening(lease.address.store_pid)


@pytest.fixture
def store(lease: Lease) -> Iterator[Server]:
    """With one object that others must not be able to read."""
    address = lease.address
    keys = {"AWS_ACCESS_KEY_ID": address.access_key, "AWS_SECRET_ACCESS_KEY": address.secret_key}
    server = Server(address.endpoint_url, address.bucket, keys)
    with credentials(keys):
        with_bucket(server)
        target = Target(bucket=server.bucket, endpoint_url=server.endpoint_url)
        with closing(open_s3(target)) as s3:
            s3.put_object(Bucket=server.bucket, Key="secret", Body=b"nobody's business")
        yield server
        with closing(open_s3(target)) as s3:
            (found,) = s3.list_objects_v2(Bucket=server.bucket)["Contents"]
            body = s3.get_object(Bucket=server.bucket, Key="secret")["Body"].read()
        assert (found["Key"], body) == ("secret", b"nobody's business")


def let_in(
    nobody: Stranger,
    port: int,
    scheme: str = "http",
    certificate: Path | None = None,
    asked: Sequence[tuple[str, str]] = ASKED,
) -> dict[str, str]:
    """Return the paths that a port answers, and its answers."""
    found = {}
    for method, path in asked:
        body = "" if method == "GET" else "planted"
        url = f"{scheme}://127.0.0.1:{port}{path}"
        status, text = nobody.request(url, method, body, certificate=certificate)
        assert "nobody's business" not in text
        if isinstance(status, int) and status < 400:
            found[f"{method} {path}"] = text
    return found


def test_no_port_answers_another_user(ports: list[int], store: Server, nobody: Stranger) -> None:
    assert len(ports) == PORTS
    found = {port: let_in(nobody, port) for port in ports}
    assert {asked for answers in found.values() for asked in answers} <= HARMLESS
    # The port for S3 shows that requests are refused, and that the port is reachable.
    assert nobody.request(f"{store.endpoint_url}/sbench/secret")[0] == 403


def test_no_port_accepts_a_certificate_of_another_user(
    ports: list[int], store: Server, nobody: Stranger, open_place: Path
) -> None:
    own = open_place / "both.pem"
    own.write_bytes(b"".join(path.read_bytes() for path in write_certificate(open_place)))
    own.chmod(0o644)
    few = [asked for asked in ASKED if asked[1] in {"/dir/assign", "/metrics", "/vol/status"}]
    for port in ports:
        assert let_in(nobody, port, "https", None, few) == {}
        assert let_in(nobody, port, "https", own, few) == {}


def test_no_socket_and_no_file_is_open_to_another_user(
    lease: Lease, store: Server, nobody: Stranger, open_place: Path
) -> None:
    address = lease.address
    assert nobody.reaches(open_place)
    assert nobody.reaches(open_place / "store") == []
    until(lambda: len(unix_sockets(address.store_pid, address.keeper_pid)) >= SOCKETS)
    paths = unix_sockets(address.store_pid, address.keeper_pid)
    assert {nobody.unix(path) for path in paths} == {"PermissionError"}
    private = {Path(path).parent for path in paths} - {SHARED}
    assert len(private) == 1
    assert nobody.reaches(private.pop()) == []
    for pid in (address.store_pid, address.keeper_pid):
        assert nobody.kill(pid) == "PermissionError"
        assert nobody.reaches(f"/proc/{pid}/environ") == []
        # Anybody reads the arguments of anybody.
        line = " ".join(psutil.Process(pid).cmdline())
        assert address.secret_key not in line


def test_no_file_of_the_store_remains_even_if_killed(
    open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(open_place)
    place = Path("killed")
    first = Lease.take(place)
    assert first is not None
    left = unix_sockets(first.address.store_pid, first.address.keeper_pid)
    os.kill(first.address.keeper_pid, signal.SIGKILL)
    until(lambda: not psutil.pid_exists(first.address.store_pid))
    first.release()
    assert [path for path in left if Path(path).exists()]
    second = Lease.take(place)
    assert second is not None
    assert not [path for path in left if Path(path).exists()]
    until((open_place / "killed" / "data" / "mini.options").exists)
    made = unix_sockets(second.address.store_pid, second.address.keeper_pid)
    second.release()
    assert made
    assert not [path for path in made if Path(path).exists()]
    assert {Path(path).parent for path in made if Path(path).parent.exists()} == {SHARED}


def test_a_kept_store_ends_with_its_socket(
    open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_place / "session"
    session.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(session))
    first = Lease.take(open_place / "kept")
    assert first is not None
    first.ask("pin")
    (private,) = session.iterdir()
    shutil.rmtree(private)
    first.release()
    assert first._keeper is not None
    assert first._keeper.wait() == 0
    assert not psutil.pid_exists(first.address.store_pid)
    second = Lease.take(open_place / "kept")
    assert second is not None
    second.release()
    assert list(session.iterdir()) == []
