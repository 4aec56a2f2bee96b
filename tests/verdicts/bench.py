"""Run cells: one store, one Lambda host, one Dask cluster and four workers serve all of them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from serverless_bench.base.units import parse_size
from serverless_bench.job.defaults import CONTROL_PREFIX
from tests.clouds.dask_clusters import running_cluster
from tests.clouds.lambda_hosts import NAME, running_host
from tests.combinations.covering import Case
from tests.commands.command import Apart
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import (
    KEYS,
    SCRIPTS,
    Server,
    free_port,
    loopback,
    running,
    with_bucket,
)
from tests.verdicts import cells, namespace
from tests.verdicts.cells import HEDGED, SHUFFLE
from tests.verdicts.judging import Result, Truth, judge
from tests.verdicts.proxy import Behaviour, proxy_of
from tests.verdicts.words import answers, said_words

BOTTLENECK: Final = "bottleneck"
FUNCTIONS: Final = 4
SECONDS: Final = 2
_PIPE: Final = "80mbit"
_LINK: Final = "20mbit"
_PER_CONNECTION: Final = 2_500_000
_LATENCIES_S: Final = {"64KiB": 0.06, "1MiB": 0.2, "4MiB": 0.6}
"""Far above the time that an object of this size takes without a latency."""
_RATE: Final = 20
"""Operations per second of each function on a schedule."""
_GETS: Final = {"4KiB": 1000, "64KiB": 32, "1MiB": 8, "4MiB": 4}
"""Gets of a function that take about ``SECONDS``."""
_OWN_OBJECTS: Final = 10
_OWN: Final = f"""
import time
def mine(tools):
    for number in range({_OWN_OBJECTS}):
        tools.put(tools.new_key(number))
        until = time.monotonic() + 0.2
"""
_OWN_CODE: Final = {
    "own function sleeps": "        time.sleep(0.2)\n",
    "own function computes": "        while time.monotonic() < until:\n            pass\n",
}
_ENVIRONMENT: Final = {**KEYS, "SBENCH_ALLOW_CODE": "1", "AWS_EC2_METADATA_DISABLED": "true"}


@dataclass(frozen=True)
class Outcome:
    """A cell, the words of its report, and how they compare with the truth."""

    case: Case
    truths: Sequence[Truth]
    said: Mapping[str, int]
    """Functions by verdict, or the single verdict of a series of runs."""
    result: Result
    verdict: str = BOTTLENECK
    """Name of the verdict: a line of a report, or a command."""
    figures: str = ""
    """Figures of a series of runs, in words."""

    @property
    def name(self) -> str:
        """Name of the cell."""
        return f"{self.verdict}, {cells.name_of(self.case)}"

    @property
    def words(self) -> str:
        """The verdict as ``store 3, unknown 1`` or ``slower, x0.797``."""
        if self.figures:
            return f"{', '.join(self.said)}, {self.figures}"
        return ", ".join(f"{name} {number}" for name, number in self.said.items())


@dataclass
class Bench:
    """Servers that run as long as the bench, each started when it is first needed."""

    directory: Path
    stack: ExitStack
    network: namespace.Namespace | None
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    @cached_property
    def store(self) -> str:
        """Address of rclone, in the namespace if there is one, over a link without a limit."""
        port = free_port()
        host = self.network.link() if self.network else "127.0.0.1"
        # In the namespace it has several addresses, and no other process reaches them.
        listens = f":{port}" if self.network else f"{host}:{port}"
        data = self.directory / "rclone"
        data.mkdir()
        command = [
            *(self.network.command if self.network else ()),
            *(str(SCRIPTS / "rclone"), "serve", "s3", str(data), "--addr", listens),
            *("--auth-key", ",".join(KEYS.values()), "--vfs-cache-mode", "off"),
            *("--config", str(self.directory / "rclone.conf")),
        ]
        url = f"http://{host}:{port}"
        self.stack.enter_context(running(command, url, self.directory / "rclone.log"))
        return with_bucket(Server(url, "test", KEYS)).endpoint_url

    @cached_property
    def pipe(self) -> str:
        return self._over(_PIPE)

    @cached_property
    def links(self) -> list[str]:
        return [self._over(_LINK) for _ in range(FUNCTIONS)]

    @cached_property
    def fast(self) -> str:
        """Address of a store that costs almost no time, so that its clients are the slow part."""
        log = self.directory / "loopback.log"
        return self.stack.enter_context(loopback("--check", "none", log=log)).endpoint_url

    @cached_property
    def host(self) -> str:
        flags = ["--pass", "SBENCH_ALLOW_CODE"]
        return self.stack.enter_context(running_host(_ENVIRONMENT, flags)).url

    @cached_property
    def cluster(self) -> str:
        started = running_cluster(self.directory / "dask", _ENVIRONMENT, FUNCTIONS)
        return self.stack.enter_context(started).address

    def check(self, case: Case) -> Outcome:
        """Run a cell and judge its report."""
        report = self.report(case)
        truths = cells.CAUSES[case["cause"]].truths
        return Outcome(case, truths, said_words(report), judge(truths, answers(report)))

    def report(self, case: Case) -> Mapping[str, Any]:
        """Run a cell and return its report."""
        with ExitStack() as rig:
            urls = self._urls(case, rig)
            flags = [*self._job(case), *self._where(case, urls, rig)]
            prefix = ("taskset", "-c", "0") if case["cause"] == "processes share a CPU" else ()
            return self._run(flags, prefix=prefix, environment=self._calls(case, rig))

    def _over(self, rate: str) -> str:
        assert self.network is not None
        port = self.store.rpartition(":")[2]
        return f"http://{self.network.link(rate)}:{port}"

    def _urls(self, case: Case, rig: ExitStack) -> Sequence[str]:
        """Return the endpoints that functions use in turns."""
        match case["cause"]:
            case "pipe of all":
                return [self.pipe]
            case "pipe of two commands":
                rig.enter_context(self._neighbour())
                return [self.pipe]
            case "limit per function":
                return self.links
            case "mixed halves":
                late = rig.enter_context(
                    proxy_of(self.store, _behaviour({**case, "cause": "late answers"}))
                )
                return [self.links[0], late, self.links[1], late]
            case "processes share a CPU" | "GIL":
                return [self.fast]
            case _:
                return [rig.enter_context(proxy_of(self.store, _behaviour(case)))]

    def _job(self, case: Case) -> list[str | Path | int]:
        """Return the command, and the work of its functions."""
        cause, executor, size = case["cause"], case["executor"], case["size"]
        number = FUNCTIONS if executor != "inline" else 1
        if cause in _OWN_CODE:
            file = self.directory / f"own_{next(self.numbers)}.py"
            file.write_text(_OWN + _OWN_CODE[cause])
            own = ("--number", number, "--objects", _OWN_OBJECTS)
            return ["custom", f"{file}:mine", *own, "--size", size]
        if cause in {"slow launch", "slow mapper"}:
            return self._work(case, number, "4KiB", 1, [])
        if cause == "slow collection":
            return self._work(case, 3 * FUNCTIONS, size, 4, ["--concurrency", FUNCTIONS])
        replays = case["command"] == "replay"
        more: list[str | Path | int] = [] if replays else ["--duration", SECONDS]
        if cause in {"processes share a CPU", "GIL"}:
            size = "4KiB"
            more += ["--client", "boto3"]
        if cause == "GIL":
            number, more = 1, [*more, "--threads", 8]
        if cause == "schedule" and not replays:
            more += ["--rate", _RATE]
        if cause == "refusals":
            more += ["--retries", 10]
        if case["command"] == HEDGED:
            more += ["--hedge", "50ms"]
        return self._work(case, number, size, 8, more)

    def _work(
        self, case: Case, number: int, size: str, objects: int, more: Sequence[str | Path | int]
    ) -> list[str | Path | int]:
        """Return a command that reads or writes objects of one size."""
        command, flags = case["command"], ["--number", number, *more]
        if command == SHUFFLE:
            total = (number - 1) * parse_size(size)
            return [command, "--mappers", 1, "--reducers", number - 1, "--size", total]
        if command == "parquet":
            file = ("--size", size, "--row-groups", 1, "--columns", 1, "--column-fraction", "100%")
            return [command, *file, *flags]
        if command == "replay":
            return [command, self._log(case["cause"], size, number), *flags]
        if command in {"read", HEDGED}:
            keys = self.keys(case["cause"], size, number * objects)
            return ["read", "--key-file", keys, "--objects", objects, *flags]
        return [command, "--objects", objects, "--size", size, *flags]

    def _log(self, cause: str, size: str, number: int) -> Path:
        """Return a log of gets, which are due at once or at a fixed rate."""
        distance_s = 1 / (_RATE * number) if cause == "schedule" else 1e-6
        rows = [
            f"{index * distance_s:.6f},get,{index % number},{parse_size(size)}\n"
            for index in range(number * _GETS[size])
        ]
        file = self.directory / f"log-{next(self.numbers)}.csv"
        file.write_text("".join(["time,op,key,size\n", *rows]))
        return file

    def keys(self, cause: str, size: str, number: int) -> Path:
        """Return a list of objects for a cause, which are written unless the store has them."""
        url = self.fast if cause in {"processes share a CPU", "GIL"} else self.store
        file = self.directory / f"keys-{parse_size(size)}-{number}-{url.rpartition(':')[2]}"
        if not file.exists():
            where = ("--endpoint-url", url, "--bucket", "test", "--executor", "inline")
            self._run(
                [
                    "write",
                    "--number",
                    1,
                    "--objects",
                    number,
                    "--size",
                    size,
                    "--key-file",
                    file,
                    *where,
                ]
            )
        return file

    def _where(self, case: Case, urls: Sequence[str], rig: ExitStack) -> list[str | Path | int]:
        """Return where functions run, and where they find the store."""
        executor = case["executor"]
        place: list[str | Path | int] = ["--executor", executor]
        place += ["--endpoint-url", ",".join(urls), "--bucket", "test"]
        if executor == "local":
            place += ["--concurrency", FUNCTIONS]
        if executor == "dask":
            place += ["--scheduler", self.cluster]
        if executor == "lambda":
            place += ["--function", NAME]
        if executor in {"dask", "lambda"}:
            place += ["--no-probe"]
        if executor == "workers":
            rig.enter_context(self._workers(case))
        return place

    @contextmanager
    def _workers(self, case: Case) -> Iterator[None]:
        """Have a worker for each function."""
        place = ("--control", f"s3://test/{CONTROL_PREFIX}", "--endpoint-url", self.store)
        started: list[subprocess.Popen[str]] = []
        try:
            for _ in range(FUNCTIONS):
                started += [
                    Apart(self.directory, _ENVIRONMENT).start("worker", *place, "--allow-code")
                ]
            for worker in started:
                assert worker.stdout is not None
                assert worker.stdout.readline()
            yield
        finally:
            for worker in started:
                worker.kill()
                worker.communicate()

    def _calls(self, case: Case, rig: ExitStack) -> Mapping[str, str]:
        """Return where the driver calls functions on AWS Lambda."""
        if case["executor"] != "lambda":
            return {}
        delays_s = {"/invocations": 2.0} if case["cause"] == "slow launch" else {}
        url = rig.enter_context(proxy_of(self.host, Behaviour(delays_s=delays_s)))
        # The path of the host's address is its token.
        url += urlsplit(self.host).path
        return {"AWS_ENDPOINT_URL_LAMBDA": url, "AWS_DEFAULT_REGION": "us-east-1"}

    @contextmanager
    def _neighbour(self) -> Iterator[None]:
        """Have another command write over the pipe."""
        where = ("--endpoint-url", self.pipe, "--bucket", "test", "--executor", "local")
        what = ("--number", 2, "--objects", 8, "--size", "1MiB", "--duration", 60)
        runs = ("--run-dir", self.directory, "--name", f"neighbour-{next(self.numbers)}")
        other = Apart(self.directory, _ENVIRONMENT).start("write", *what, *where, *runs)
        try:
            yield
        finally:
            other.terminate()
            other.communicate()

    def _run(
        self,
        flags: Sequence[str | Path | int],
        *,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """Make a run, in processes of its own, and return its report."""
        runs = ("--run-dir", self.directory, "--name", f"run-{next(self.numbers)}")
        flags = [*flags, *runs, "--progress", "none"]
        flags = [*flags, "--format", "json"]
        done = self.command(flags, prefix=prefix, environment=environment)
        report: Mapping[str, Any] = json.loads(done.splitlines()[-1])
        assert report["ok"] == report["requested"], f"{flags}: {done}"
        return report

    def command(
        self,
        flags: Sequence[str | Path | int],
        *,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command, in processes of its own, and return its output."""
        command = [*prefix, sys.executable, "-m", "serverless_bench", *flags]
        done = subprocess.run(
            list(map(str, command)),
            env={**os.environ, **_ENVIRONMENT, **(environment or {})},
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.stdout, f"{command}: {done.stderr}"
        return done.stdout


def _behaviour(case: Mapping[str, str]) -> Behaviour:
    """Return the proxy's behaviour where it is the rig."""
    latency_s = _LATENCIES_S[case["size"]]
    behaviours = {
        "limit per connection": Behaviour(connection_bytes_per_s=_PER_CONNECTION),
        "late answers": Behaviour(latency_s=latency_s),
        "queue": Behaviour(latency_s=latency_s / 2, places=1),
        "refusals": Behaviour(refused=0.4),
        "slow mapper": Behaviour(latency_s=0.5),
        # A launch on AWS Lambda makes no event in the store: its call is held instead.
        "slow launch": Behaviour(delays_s={"/events/": 2.0}),
        "slow collection": Behaviour(delays_s={"/records/": 2.0}),
    }
    return behaviours.get(case["cause"], Behaviour())


@contextmanager
def bench_in(directory: Path) -> Iterator[Bench]:
    """Yield a bench, without a namespace if none can be made."""
    with ExitStack() as stack:
        network = None if namespace.missing() else stack.enter_context(namespace.namespace())
        yield Bench(directory, stack, network)
