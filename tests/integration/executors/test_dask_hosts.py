"""``--executor dask --ssh-host``: two SSH servers of Debian's on the loopback device."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from serverless_bench.rundir.run import load_run
from serverless_bench.stores.loopback.server import serving
from tests.command import Sbench
from tests.dask_clusters import listening
from tests.processes import PATIENCE_S, Family, until
from tests.servers import KEYS, free_port

SSHD = shutil.which("sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
PRIVILEGES = Path("/run/sshd")
"""Without this directory a server of root's does not start."""
HOSTS = ("one", "two")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(SSHD is None, reason="no sshd here: apt-get install openssh-server"),
]


@pytest.fixture
def family() -> Family:
    return Family()


@pytest.fixture
def here(tmp_path: Path, family: Family) -> Iterator[Sbench]:
    """The command, for a user who reaches two hosts by SSH."""
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True, mode=0o700)
    (tmp_path / "tmp").mkdir()
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(key, check=True)
    own = {"HOME": str(home.parent), "TMPDIR": str(tmp_path / "tmp")}
    with ExitStack() as stack:
        ports = [stack.enter_context(sshd(tmp_path, family)) for _ in HOSTS]
        public = (tmp_path / "host.pub").read_text().rsplit(" ", 1)[0]
        (home / "known_hosts").write_text("".join(f"[127.0.0.1]:{p} {public}\n" for p in ports))
        (home / "config").write_text(
            "".join(
                f"Host {host}\n HostName 127.0.0.1\n Port {port}\n IdentityFile {tmp_path}/user\n"
                for host, port in zip(HOSTS, ports, strict=True)
            )
        )
        yield Sbench(tmp_path, {**KEYS, **own})


@contextmanager
def sshd(place: Path, family: Family) -> Iterator[int]:
    """Run a server that lets one key in, and gives its sessions credentials as a host has them."""
    port = free_port()
    given = {**KEYS, **family.mark, "TMPDIR": str(place / "tmp")}
    file = place / f"sshd-{port}"
    file.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nPidFile none\n"
        f"AuthorizedKeysFile {place}/user.pub\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"SetEnv {' '.join(f'{name}={value}' for name, value in given.items())}\n"
    )
    made = os.geteuid() == 0 and not PRIVILEGES.exists()
    if made:
        PRIVILEGES.mkdir(mode=0o755)
    server = subprocess.Popen(
        [str(SSHD), "-D", "-e", "-f", str(file)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        first = server.stderr.readline()
        assert first.startswith("Server listening on 127.0.0.1"), first
        yield port
    finally:
        server.terminate()
        server.communicate()
        if made:
            PRIVILEGES.rmdir()


JOB = ("--executor", "dask", "--ssh-host", "one", "--ssh-host", "two", "--slots", 2)


def test_functions_run_on_two_hosts(here: Sbench, family: Family) -> None:
    with serving() as store:
        where = ("--endpoint-url", store.endpoint_url, "--bucket", "any", "--run-dir", ".")
        flags = (*JOB, *where, "--number", 40, "--size", "64KiB", "--format", "json")
        driver = here.apart.start("write", *flags, "--name", "w", "--key-file", "keys")
        until(lambda: family.members("executors.dask_worker") or driver.poll() is not None)
        assert {address for address, _ in listening(family)} == {"127.0.0.1"}
        _, err = driver.communicate(timeout=PATIENCE_S)
        assert driver.returncode == 0, err
        done = here.apart("read", *JOB, *where, "--key-file", "keys", "--format", "json")
        assert (done.code, done.json["ok"], done.json["verified_bytes"]) == (0, 40, 40 << 16)
    limits = load_run(here.directory / "w").limits
    assert limits is not None
    assert [worker["slots"] for worker in limits["workers"]] == [2, 2]
    until(family.gone)
    assert list((here.directory / "tmp").iterdir()) == []


def test_hosts_have_nothing_that_runs_when_the_driver_is_killed(
    here: Sbench, family: Family
) -> None:
    with serving() as store:
        where = ("--endpoint-url", store.endpoint_url, "--bucket", "any", "--run-dir", ".")
        slow = ("--number", 4, "--size", "1KiB", "--objects", 100, "--rate", 1)
        driver = here.apart.start("write", *JOB, *where, *slow, "--name", "w")
        until(lambda: store.state.objects.count() or driver.poll() is not None)
        driver.kill()
        driver.communicate()
        until(family.gone)


def test_the_doctor_looks_at_both(here: Sbench) -> None:
    done = here.apart("doctor", *JOB)
    assert done.code == 0, done.err
    assert done.out.count("ok    dask worker ") == 8


def test_a_host_that_does_not_let_us_in_is_one_line(here: Sbench) -> None:
    (here.directory / "user.pub").write_text("")
    done = here.apart("doctor", *JOB)
    assert done.code != 0
    assert "no worker on host " in done.out
    assert "Permission denied" in done.out
