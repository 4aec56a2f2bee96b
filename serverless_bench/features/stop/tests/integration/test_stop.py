"""Functions that share no memory with their driver are stopped, and deliver."""

import json
import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from serverless_bench.base.errors import INTERRUPTED, CostError
from serverless_bench.features.audit.audit import audit_file
from serverless_bench.features.check.audited import Billed
from serverless_bench.features.cost.requests import requests_of
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.rundir.listing import RECORDS
from serverless_bench.rundir.run import Run, load_run
from tests.clouds.lambda_hosts import NAME, LambdaHost, running_host
from tests.commands.command import Apart
from tests.commands.processes import PATIENCE_S, until
from tests.data.runs import long_ago
from tests.house.members import uses
from tests.stores.servers import KEYS

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux"),
    uses("feature lambda_host", "feature loopback"),
]
NAMES = 50
LONG = ("--size", "4KiB", "--objects", NAMES, "--duration", 600, "--deadline", 700)
MANY = ("--size", "20kB", "--objects", 20_000, "--deadline", 700)
RATED = (*LONG, "--rate", 300)
NUMBER = 3


@dataclass
class Place:
    """A store, and where functions run."""

    sbench: Apart
    server: LoopbackServer
    log: Path
    flags: tuple[Any, ...]
    host: LambdaHost | None = None

    def start(self, *flags: Any, number: int = NUMBER) -> Any:
        where = ("--endpoint-url", self.server.endpoint_url, "--bucket", "any", "--name", "r")
        how = ("--number", number, "--concurrency", number, "--format", "json")
        return self.sbench.start("write", *where, *how, *self.flags, *flags)

    @property
    def run(self) -> Run:
        return load_run(self.sbench.directory / "sbench-runs" / "r")

    @property
    def written(self) -> int:
        return sum(self.server.state.statistics()["requests"].values())

    def objects(self) -> list[str]:
        return [*self.server.state.objects.page("any", "", "", 10**6)[0]]

    def writes(self, count: int, functions: int = NUMBER) -> None:
        """Wait until so many requests have arrived, and so many functions have begun."""

        def begun() -> bool:
            objects = self.objects()
            claims = sum("/claims/0" in key for key in objects)
            # Those of ``local`` claim nothing: each writes objects of NAMES names.
            return claims >= functions or len(objects) - claims > NAMES * (functions - 1)

        until(lambda: self.written >= count and begun())

    def rests(self) -> None:
        """Wait until no function runs."""
        if self.host is not None:
            host = self.host
            until(lambda: not host.status()["running"])

    def differences(self) -> Any:
        """Return how the requests of the run differ from those that the store saw."""
        self.server.state.request_log.settle()
        requests, run = requests_of(self.run), self.run
        all_kinds = {**requests.data, **{n: sum(c.values()) for n, c in requests.overhead.items()}}
        billed = Billed(requests=all_kinds, exact=requests.exact)
        return audit_file(run.path, self.log, billed=billed).differences


@contextmanager
def place(executor: str, directory: Path, settings: LoopbackSettings) -> Iterator[Place]:
    with ExitStack() as stack:
        server = stack.enter_context(serving(settings))
        own = {**KEYS, "HOME": str(directory), "TMPDIR": str(directory)}
        flags: tuple[Any, ...] = ("--executor", executor)
        host = None
        if executor == "lambda":
            host = stack.enter_context(running_host())
            own, flags = {**own, **host.environment}, (*flags, "--function", NAME)
        if executor == "lithops":
            configuration = {"lithops": {"backend": "localhost", "storage": "localhost"}}
            own["LITHOPS_CONFIG"] = json.dumps(configuration)
        sbench = Apart(directory, own)
        if executor == "workers":
            flags = (*flags, "--control-prefix", "s3://any/control/")
            for _ in range(NUMBER):
                url = ("--endpoint-url", server.endpoint_url)
                sbench.start("worker", "--control", "s3://any/control/", *url)
        assert settings.request_log is not None
        yield Place(sbench, server, settings.request_log, flags, host)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Place]:
    settings = LoopbackSettings(request_log=tmp_path / "request_log")
    with place("lambda", tmp_path, settings) as opened:
        yield opened


EXECUTORS = [
    "lambda",
    "local",
    pytest.param("workers", marks=uses("executor workers")),
    pytest.param("lithops", marks=(uses("executor lithops"), pytest.mark.full)),
    pytest.param("dask", marks=(uses("executor dask"), pytest.mark.full)),
]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_ctrl_c_stops_functions_which_deliver(tmp_path: Path, executor: str) -> None:
    settings = LoopbackSettings(request_log=tmp_path / "request_log")
    with place(executor, tmp_path, settings) as there:
        driver = there.start(*LONG)
        there.writes(500)
        driver.send_signal(signal.SIGINT)
        out, err = driver.communicate(timeout=PATIENCE_S)
        there.rests()
        report = json.loads(out.splitlines()[-1])
        assert driver.returncode == INTERRUPTED, err
        assert report["stopped"]["by"] == "Ctrl-C"
        assert (report["lost"], report["ok"] + report["failed"]) == (0, NUMBER), err
        assert not there.differences()
        assert requests_of(there.run).exact


@pytest.mark.parametrize("executor", ["lambda", pytest.param("workers", marks=pytest.mark.full)])
def test_functions_of_a_dead_driver_are_stopped_and_deliver(tmp_path: Path, executor: str) -> None:
    settings = LoopbackSettings(request_log=tmp_path / "request_log")
    with place(executor, tmp_path, settings) as there:
        driver = there.start(*MANY)
        there.writes(500)
        driver.kill()
        driver.communicate()
        done = there.sbench("stop", "r", "--format", "json")
        there.rests()
        assert (done.code, done.json["lost"], done.json["failed"]) == (0, 0, NUMBER), done.err
        assert done.json["stopped"]["by"] == "sbench stop"
        assert not there.differences()


def test_a_driver_ends_with_the_stop_of_another_process(there: Place) -> None:
    driver = there.start(*MANY)
    there.writes(500)
    done = there.sbench("stop", "r", "--format", "json")
    out, err = driver.communicate(timeout=PATIENCE_S)
    assert (done.code, driver.returncode) == (0, INTERRUPTED), err
    assert json.loads(out.splitlines()[-1])["stopped"] == done.json["stopped"]
    assert done.json["failed"] == NUMBER
    assert not there.differences()
    assert requests_of(there.run).exact


def test_a_stop_needs_no_run_directory_and_resume_continues_after_it(there: Place) -> None:
    driver = there.start("--size", "4KiB", "--objects", 50, "--duration", 4, number=NUMBER)
    there.writes(100)
    run = there.run
    assert run.job.control is not None
    control = ("--control", f"s3://any/{run.job.control.prefix}")
    url = ("--endpoint-url", there.server.endpoint_url)
    driver.kill()
    driver.communicate()
    unknown = there.sbench("stop", "unknown", *control, *url)
    assert (unknown.code, "no run unknown below" in unknown.err) == (2, True), unknown.err
    elsewhere = there.sbench.directory / "elsewhere"
    elsewhere.mkdir()
    done = Apart(elsewhere, there.sbench.environment)("stop", run.run_id, *control, *url)
    assert (done.code, "notice it within" in done.out) == (0, True), done.err
    there.rests()
    resumed = there.sbench("resume", "r", "--format", "json")
    assert (resumed.code, resumed.json["ok"]) == (0, NUMBER), resumed.err


def test_resume_launches_what_a_stop_left_out(there: Place) -> None:
    driver = there.start(
        *("--size", "4KiB", "--objects", 50, "--duration", 5, "--concurrency", 1), number=NUMBER
    )
    there.writes(100, functions=1)
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=PATIENCE_S)
    assert json.loads(out.splitlines()[-1])["lost"] == NUMBER - 1, err
    resumed = there.sbench("resume", "r", "--format", "json")
    assert (resumed.code, resumed.json["ok"]) == (0, NUMBER), resumed.err
    assert resumed.json["errors"] == {}


def test_a_second_signal_leaves_and_says_what_runs(there: Place) -> None:
    driver = there.start(*LONG, "--progress", "plain")
    there.writes(500)
    driver.send_signal(signal.SIGINT)
    # A second signal only counts after the first one has been handled.
    until(lambda: driver.poll() is not None or driver.send_signal(signal.SIGINT))
    _, err = driver.communicate()
    assert driver.returncode == INTERRUPTED, err
    assert "3 functions may still run, until" in err
    assert "and cost up to $" in err
    done = there.sbench("stop", "r", "--format", "json")
    there.rests()
    assert (done.code, done.json["lost"]) == (0, 0), done.err


@uses("feature cost", "feature live")
@pytest.mark.parametrize(
    ("limit", "least"), [(0.0065, 0.4), pytest.param(0.035, 0.8, marks=pytest.mark.full)]
)
def test_a_slow_store_costs_no_more_than_the_limit(
    tmp_path: Path, limit: float, least: float
) -> None:
    """Each connection has a fifth of the rate that is expected of S3; the reserve is $0.0034."""
    shape = Shape(connection_bytes_per_s=18e6)
    settings = LoopbackSettings(request_log=tmp_path / "request_log", shape=shape)
    with place("lambda", tmp_path, settings) as there:
        size = ("--mb", 64, "--objects", 20 if limit < 0.01 else 120)
        driver = there.start(*size, "--max-cost", limit, "--timeout", "2s", number=4)
        out, err = driver.communicate(timeout=PATIENCE_S)
        report = json.loads(out.splitlines()[-1])
        assert driver.returncode == CostError.exit_code, err
        assert report["stopped"]["by"] == "cost limit"
        assert (report["lost"], report["failed"]) == (0, 4)
        assert least * limit <= report["bill"]["total"] <= limit
        assert not there.differences()


def test_a_body_is_cut(tmp_path: Path) -> None:
    shape = Shape(connection_bytes_per_s=2e6)
    settings = LoopbackSettings(request_log=tmp_path / "request_log", shape=shape)
    with place("lambda", tmp_path, settings) as there:
        driver = there.start("--size", "2GB", "--part-size", "5MiB", "--deadline", 700)
        requests = there.server.state.statistics
        until(lambda: requests()["requests"].get("create_multipart", 0) >= NUMBER)
        driver.send_signal(signal.SIGINT)
        out, err = driver.communicate(timeout=PATIENCE_S)
        report = json.loads(out.splitlines()[-1])
        assert report["failed_operations"] == NUMBER, err
        assert set(there.run.operations["error"].tolist()) == {"stopped"}
        assert not there.differences()


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 2 else pytest.mark.full) for n in range(60)]
)
def test_a_stop_at_a_random_instant_loses_nothing(there: Place, seed: int) -> None:
    draw = random.Random(seed)
    driver = there.start(*draw.choice([MANY, LONG, RATED]))
    there.writes(draw.randint(20, 3000), functions=1)
    victim = draw.choice(["none", "none", "a function", "the driver"])
    assert there.host is not None
    if victim == "a function":
        functions = psutil.Process(there.host.pid).children(recursive=True)
        draw.choice([p for p in functions if not p.children()]).kill()
    if victim == "the driver":
        driver.kill()
    else:
        driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=PATIENCE_S)
    if victim == "the driver":
        assert there.sbench("stop", "r").code == 0
    there.rests()
    report = there.sbench("report", "r", "--format", "json").json
    assert report["ok"] + report["failed"] + report["lost"] == NUMBER
    began = report["ok"] + report["failed"] + (victim == "a function")
    claimed = sum("/claims/0" in key for key in there.objects())
    cancelled = sum("launch cancelled" in cause for cause in there.run.functions["error"] if cause)
    assert claimed - cancelled <= began, (victim, err, report["errors"])
    existing = {key for key in there.objects() if "control/" not in key}
    run = there.run
    assert existing <= {*run.ledger()}
    delivered = (run.path / RECORDS).read_text().count('"record"')
    assert delivered == NUMBER - report["lost"]
    assert not there.differences()


@pytest.mark.parametrize("flags", [(), ("--no-progress-objects",)])
def test_a_sample_of_functions_shows_progress(there: Place, flags: tuple[str, ...]) -> None:
    shows = not flags
    driver = there.start(*LONG, "--progress", "plain", *flags)
    seen = "put ≈ " if shows else "report their operations when they end"
    lines = iter(driver.stderr)
    line = next(line for line in lines if seen in line)
    assert ("3 of 3 functions sampled" in line) == shows
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=PATIENCE_S)
    there.rests()
    assert any("/claims/progress/" in key for key in there.objects()) == shows
    assert not there.differences()
    long_ago(there.run.path)
    cleaned = there.sbench("clean", "r")
    assert cleaned.code == 0, cleaned.err
    assert not there.objects()
