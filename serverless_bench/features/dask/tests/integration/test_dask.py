"""``--executor dask``: clusters that sbench starts, and existing clusters."""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from distributed.security import Security

import serverless_bench
from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.rundir.run import load_run
from tests.clouds.dask_clusters import (
    DaskCluster,
    have_ended,
    listening,
    relatives,
    running_cluster,
)
from tests.commands.command import Sbench
from tests.commands.processes import PATIENCE_S, Family, until
from tests.stores.servers import KEYS

SLOTS = 8


@pytest.fixture
def store() -> Iterator[LoopbackServer]:
    with serving() as server:
        yield server


@pytest.fixture
def family() -> Family:
    return Family()


@pytest.fixture
def here(tmp_path: Path, family: Family) -> Sbench:
    (tmp_path / "tmp").mkdir()
    own = {"TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path)}
    return Sbench(tmp_path, {**KEYS, **family.mark, **own})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Two workers with a slot each."""
    with running_cluster(tmp_path_factory.mktemp("dask"), KEYS, 1, 1) as running:
        yield running


def job(store: LoopbackServer, *flags: str | int | Path) -> Sequence[str | int | Path]:
    return (
        *("--executor", "dask", "--endpoint-url", store.endpoint_url, "--bucket", "any"),
        *("--run-dir", ".", "--format", "json", *flags),
    )


@pytest.mark.parametrize("number", [80, pytest.param(1000, marks=pytest.mark.full)])
def test_many_functions_on_eight_slots(
    here: Sbench, store: LoopbackServer, family: Family, number: int
) -> None:
    """Every byte is compared; afterwards no process and no file remains."""
    many = ("--number", number, "--slots", SLOTS)
    writer = here.apart.start(
        "write", *job(store, *many, "--size", "64KiB", "--key-file", "keys", "--name", "w")
    )
    until(lambda: family.members("features.dask.worker") or writer.poll() is not None)
    assert {address for address, _ in listening(family)} == {"127.0.0.1"}
    running = relatives(family)
    out, err = writer.communicate(timeout=PATIENCE_S)
    assert writer.returncode == 0, err
    until(lambda: have_ended(running))
    assert f"8 slots for {number} functions: {number // 8} batches" in err
    assert json.loads(out.splitlines()[-1])["bytes"] == number << 16
    read = here.apart("read", *job(store, *many, "--key-file", "keys", "--name", "r"))
    counts = [read.json[name] for name in ("ok", "failed", "lost", "duplicate", "bytes")]
    assert (read.code, counts) == (0, [number, 0, 0, 0, number << 16]), read.err
    run = load_run(here.directory / "r")
    assert len(set(run.functions["worker_id"])) <= SLOTS, "processes are used again"
    assert run.operations["verified_bytes"].sum() == number << 16
    until(family.gone)
    assert sorted(path.name for path in here.directory.iterdir()) == ["keys", "r", "tmp", "w"]
    assert list((here.directory / "tmp").iterdir()) == []


def lets_in(address: tuple[str, int]) -> bool:
    """Tell whether a part of a cluster accepts connections without a certificate."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    # Dask speaks first, whoever has connected.
    with (
        socket.create_connection(address) as plain,
        suppress(OSError),
        anybody.wrap_socket(plain) as connection,
    ):
        return bool(connection.recv(1))
    return False


def test_a_killed_driver_leaves_no_process(
    here: Sbench, store: LoopbackServer, family: Family
) -> None:
    """While it runs, only members of the cluster can connect, and no other user of this machine."""
    slow = ("--number", 2, "--size", "1KiB", "--objects", 100, "--rate", 1, "--slots", 2)
    driver = here.apart.start("write", *job(store, *slow, "--name", "w"))
    until(lambda: store.state.objects.count() or driver.poll() is not None)
    places, running = listening(family), relatives(family)
    assert len(places) == 3, "scheduler, nanny and worker"
    assert [place for place in places if lets_in(place)] == []
    driver.kill()
    driver.communicate()
    until(family.gone)
    until(lambda: have_ended(running))
    assert list((here.directory / "tmp").iterdir()) == []


def test_an_existing_cluster_is_clean_afterwards(
    here: Sbench, store: LoopbackServer, cluster: DaskCluster, family: Family
) -> None:
    done = here.apart(
        "write", *job(store, "--scheduler", cluster.address, "--number", 5, "--size", "1KiB")
    )
    assert (done.code, done.json["ok"]) == (0, 5), done.err
    assert done.json["executor"] == "dask"
    until(family.gone)
    until(lambda: not cluster.functions())
    assert all(worker.poll() is None for worker in cluster.workers)


def certificates(place: Path) -> Mapping[str, str]:
    """Return Dask's settings for certificates in files, as for a scheduler of somebody's."""
    security = Security.temporary()
    files = {}
    for name in ("ca_file", "scheduler_cert", "scheduler_key", "client_cert", "client_key"):
        file = place / name
        file.write_text(getattr(security, f"tls_{name}"))
        setting = name.replace("_", "__", 1) if name != "ca_file" else name
        files[f"DASK_DISTRIBUTED__COMM__TLS__{setting.upper()}"] = str(file)
    for name in ("CERT", "KEY"):
        files[f"DASK_DISTRIBUTED__COMM__TLS__WORKER__{name}"] = files[
            f"DASK_DISTRIBUTED__COMM__TLS__SCHEDULER__{name}"
        ]
    return files


def test_clients_without_a_certificate_are_refused(here: Sbench, store: LoopbackServer) -> None:
    place = here.directory / "certificates"
    place.mkdir()
    security = certificates(place)
    with running_cluster(
        here.directory / "cluster", {**KEYS, **security}, 1, protocol="tls"
    ) as running:
        flags = job(store, "--scheduler", running.address, "--number", 1, "--size", "1KiB")
        stranger = here.apart("write", *flags)
        assert stranger.code == 4
        assert "requires a certificate, and Dask's settings contain none" in stranger.err
        done = here.apart("write", *flags, **security)
    assert (done.code, done.json["ok"]) == (0, 1), done.err


IN_PYTHON = """
import sys
from distributed import LocalCluster
import serverless_bench as sbench
from serverless_bench.features.dask.executor import dask_scheduler

if __name__ == "__main__":
    with LocalCluster(1, threads_per_worker=2, security=True, dashboard_address=None) as cluster:
        target = sbench.Target(bucket="any", endpoint_url=sys.argv[1])
        job = sbench.JobSpec(
            workload="write", target=target, control=target, number=2, size=1024,
            executor="dask", options={"scheduler": dask_scheduler(cluster)},
        )
        run = sbench.run_job(job, "w")
        print(job.options["scheduler"] == cluster.scheduler_address, sbench.summarize(run).ok)
"""


def test_a_cluster_of_python_brings_its_certificate(here: Sbench, store: LoopbackServer) -> None:
    """Coiled's and dask-cloudprovider's certificates exist only in memory; none is saved."""
    script = here.directory / "script.py"
    script.write_text(IN_PYTHON)
    done = subprocess.run(
        [sys.executable, script, store.endpoint_url],
        cwd=here.directory,
        env={**os.environ, **here.environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True 2\n"), done.stderr
    files = [path for path in (here.directory / "w").rglob("*") if path.is_file()]
    assert files
    assert not any(b"-----BEGIN" in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--scheduler", "10.0.0.1:8786"], 2, "--scheduler '10.0.0.1:8786' is not an address"),
        (["--scheduler", "tcp://127.0.0.1:1", "--slots", "2"], 2, "--slots is for a new cluster"),
        (
            ["--scheduler", "tcp://s.dask.invalid:8786"],
            4,
            "s.dask.invalid cannot be resolved here",
        ),
        (["--slots", "0"], 2, "--slots must be at least 1"),
        # It let every host into the scheduler, which was on the user's machine.
        (["--ssh-host", "node1"], 2, "No such option"),
    ],
)
def test_bad_input_is_one_line(
    here: Sbench, store: LoopbackServer, flags: Sequence[str], code: int, words: str
) -> None:
    done = here("write", *job(store, "--number", 1, "--size", "1KiB", *flags))
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "Traceback" not in done.err


def test_functions_of_a_cluster_write_no_files(here: Sbench) -> None:
    file = here.directory / "arrays"
    done = here("array", "write", "--path", file, "--number", 1, "--executor", "dask")
    assert done.code == 2
    assert "functions of --executor dask write no files" in done.err


def test_a_cluster_without_workers_is_refused(here: Sbench, store: LoopbackServer) -> None:
    with running_cluster(here.directory / "cluster", KEYS) as running:
        done = here(
            "write", *job(store, "--number", 1, "--size", "1KiB", "--scheduler", running.address)
        )
    assert done.code == 4
    assert "has no workers" in done.err


def test_a_worker_with_other_code_is_named(here: Sbench, store: LoopbackServer) -> None:
    """Before anything is launched."""
    other = here.directory / "other"
    shutil.copytree(Path(serverless_bench.__path__[0]), other / "serverless_bench")
    (other / "serverless_bench" / "more.py").touch()
    with running_cluster(here.directory / "cluster", KEYS, 1) as running:
        running.start_worker(1, path=str(other))
        flags = ("--scheduler", running.address)
        done = here("write", *job(store, "--number", 1, "--size", "1KiB", *flags))
        assert done.code == 4
        assert "Dask worker tcp://127.0.0.1:" in done.err
        version = serverless_bench.__version__
        assert f"has other code of sbench {version}, here is {version}" in done.err
        looked = here("doctor", "--executor", "dask", *flags)
        assert looked.code == ExitCode.UNFIT
        assert looked.out.count("has other code of sbench") == 1
    assert store.state.objects.count() == 0


def test_a_worker_without_sbench_is_named(here: Sbench, store: LoopbackServer) -> None:
    none = here.directory / "none" / "serverless_bench"
    none.mkdir(parents=True)
    (none / "__init__.py").touch()
    with running_cluster(here.directory / "cluster", KEYS) as running:
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "distributed.cli.dask_worker", running.address),
                *("--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--nthreads", "1"),
            ],
            env={**os.environ, **here.environment, "PYTHONPATH": str(none.parent)},
            cwd=here.directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        flags = ("--scheduler", running.address)

        def refused() -> str:
            done = here("write", *job(store, "--number", 1, "--size", "1KiB", *flags))
            assert done.code == 4
            return "" if "has no workers" in done.err else done.err

        try:
            assert "No module named 'serverless_bench.features'" in until(refused)
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.parametrize(
    ("installed", "says"),
    [
        ("0.0.9", f"has serverless-bench 0.0.9, here is {serverless_bench.__version__}"),
        (serverless_bench.__version__, "no function can run: Dask could not run it: RuntimeError"),
    ],
)
def test_a_scheduler_without_sbench_is_named(
    here: Sbench, store: LoopbackServer, installed: str, says: str
) -> None:
    """Like those of Helm charts and of managed clusters: their tasks end before they begin."""
    none = here.directory / "none" / "serverless_bench"
    none.mkdir(parents=True)
    (none / "__init__.py").touch()
    about = none.parent / f"serverless_bench-{installed}.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: serverless-bench\nVersion: {installed}\n")
    file = here.directory / "scheduler.json"
    (here.directory / "cluster").mkdir()
    cluster = DaskCluster(here.directory / "cluster", KEYS, "tcp")
    cluster.scheduler = subprocess.Popen(
        [
            *(sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"),
            *("--port", "0", "--no-dashboard", "--scheduler-file", str(file)),
        ],
        env={**os.environ, **here.environment, "PYTHONPATH": str(none.parent)},
        cwd=here.directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        cluster.port = int(address.rpartition(":")[2])
        cluster.start_worker(2)
        flags = ("--scheduler", cluster.address, "--number", 2, "--size", "1KiB")
        done = here("write", *job(store, *flags))
    finally:
        cluster.end()
    assert done.code == 4
    assert says in done.err
    assert "cancelled" not in done.err


NOBODY = {
    **dict.fromkeys(KEYS, ""),
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""Variables of a host that has no credentials."""
DENIED = "no credentials: set AWS_ACCESS_KEY_ID or AWS_PROFILE"


def test_workers_without_credentials_are_named_before_anything_is_launched(
    here: Sbench, store: LoopbackServer
) -> None:
    """Otherwise the first function reports it, and no other is launched."""
    with running_cluster(here.directory / "cluster", NOBODY, 2) as running:
        flags = job(store, "--scheduler", running.address, "--number", 4, "--size", "1KiB")
        asked = here("write", *flags)
        assert asked.code == 4
        assert "Dask worker tcp://127.0.0.1:" in asked.err
        may_not = "lacks permissions that this job needs: put if absent in bucket any: "
        assert may_not + DENIED in asked.err
        assert store.state.objects.count() == 0
        unasked = here("write", *flags, "--no-probe", "--name", "w")
        assert (unasked.code, unasked.json["lost"]) == (4, 4)
        assert f"no function can run: AccessDenied: {DENIED}" in unasked.err
    run = load_run(here.directory / "w")
    assert (len(run.waves), len(run.functions["index"])) == (0, 4)
    assert set(run.functions["error"]) == {f"AccessDenied: {DENIED}"}
    assert (run.functions["not_started"] == 1).all()


@pytest.mark.full
def test_a_worker_that_hangs_from_the_start_is_named(here: Sbench, store: LoopbackServer) -> None:
    """This takes the minute that a busy worker would be given."""
    with running_cluster(here.directory / "cluster", KEYS, 1, 1) as running:
        running.workers[0].send_signal(signal.SIGSTOP)
        flags = job(store, "--scheduler", running.address, "--number", 1, "--size", "1KiB")
        done = here("write", *flags)
    assert done.code == 4
    assert "sbench: no Dask cluster: Dask worker tcp://127.0.0.1:" in done.err
    assert "does not answer" in done.err


def test_the_doctor_looks_at_every_worker(here: Sbench, tmp_path: Path) -> None:
    with running_cluster(tmp_path / "cluster", KEYS, 1, 12, ahead_s=(3.0,)) as running:
        done = here("doctor", "--executor", "dask", "--scheduler", running.address)
    assert done.code == 0, done.out
    found = [line for line in done.out.splitlines() if "dask worker" in line]
    assert len(found) == 8
    # On a busy machine an answer takes long, and the interval is wide.
    clocks = re.findall(r"off by (\S+) to (\S+) s", "\n".join(found))
    assert len(clocks) == 2
    assert any(float(low_s) <= 3 <= float(high_s) for low_s, high_s in clocks)
    assert sum("free for temporary files" in line for line in found) == 2
    assert sum(" for 12 slots" in line for line in found) == 1
