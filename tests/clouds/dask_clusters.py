"""A Dask cluster of another user: a scheduler and workers, each a process of its own.

python -m tests.clouds.dask_clusters scheduler PROTOCOL PORT
python -m tests.clouds.dask_clusters worker ADDRESS SLOTS DIRECTORY
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.commands.processes import Family, until

ROOT = Path(__file__).parents[2]
CLOCK = """
import os, time
now_ns, now = time.time_ns, time.time
ahead_s = float(os.environ["SBENCH_TEST_AHEAD_S"])
time.time_ns = lambda: now_ns() + round(ahead_s * 1e9)
time.time = lambda: now() + ahead_s
"""
"""Start-up code of every Python process on a host with a wrong clock."""


@dataclass
class DaskCluster:
    """A running cluster."""

    directory: Path
    environment: Mapping[str, str]
    protocol: str
    port: int = 0
    """Port of the scheduler, which the kernel chooses at the first start."""
    scheduler: "subprocess.Popen[str] | None" = None
    workers: "list[subprocess.Popen[str]]" = field(default_factory=list)
    family: Family = field(default_factory=Family)

    @property
    def address(self) -> str:
        return f"{self.protocol}://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        self.scheduler, address = self._start("scheduler", self.protocol, str(self.port))
        self.port = int(address.rpartition(":")[2])

    def start_worker(self, slots: int, ahead_s: float = 0, path: str = "") -> None:
        """Start another worker, with a clock ahead by this time, and with additional modules."""
        more = {"PYTHONPATH": os.pathsep.join([path, str(ROOT)])} if path else {}
        if ahead_s:
            startup = self.directory / f"clock-{ahead_s:g}"
            startup.mkdir()
            (startup / "sitecustomize.py").write_text(CLOCK)
            more = {
                "SBENCH_TEST_AHEAD_S": str(ahead_s),
                "PYTHONPATH": os.pathsep.join([str(startup), str(ROOT)]),
            }
        place = (self.address, str(slots), str(self.directory))
        self.workers.append(self._start("worker", *place, **more)[0])

    def functions(self) -> int:
        """Return the number of processes of functions in its workers, parents included."""
        return len(self.family.members("features.dask.worker"))

    def end(self) -> None:
        """Kill it, and wait until all of its processes have ended."""
        for process in [*self.workers, *filter(None, [self.scheduler])]:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.communicate()
        self.workers.clear()
        until(self.family.gone)

    def _start(self, *arguments: str, **more: str) -> "tuple[subprocess.Popen[str], str]":
        """Start a part of it; return its process, and its address."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.clouds.dask_clusters", *arguments],
            cwd=self.directory,
            env={
                **os.environ,
                **self.environment,
                "PYTHONPATH": str(ROOT),
                **self.family.mark,
                **more,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        address = process.stdout.readline().rstrip("\n")
        if not address:
            raise AssertionError(process.communicate()[1])
        return process, address


@contextmanager
def running_cluster(
    directory: Path,
    environment: Mapping[str, str],
    *slots: int,
    ahead_s: Sequence[float] = (),
    protocol: str = "tcp",
) -> Iterator[DaskCluster]:
    """Run a cluster for the length of a block, with a worker for each number of slots."""
    directory.mkdir(exist_ok=True)
    cluster = DaskCluster(directory, environment, protocol)
    try:
        cluster.start_scheduler()
        for number, has in enumerate(slots):
            cluster.start_worker(has, (*ahead_s, *[0] * len(slots))[number])
        yield cluster
    finally:
        cluster.end()


def relatives(family: Family) -> list[psutil.Process]:
    """Return a family, and its children: Dask's write their name over their environment."""
    found: dict[int, psutil.Process] = {}
    for member in family.members():
        with suppress(psutil.NoSuchProcess):
            found |= {one.pid: one for one in [member, *member.children(recursive=True)]}
    return list(found.values())


def listening(family: Family) -> set[tuple[str, int]]:
    """Return where anything of a family listens: addresses and ports."""
    found = set()
    for relative in relatives(family):
        with suppress(psutil.NoSuchProcess):
            found |= {
                (one.laddr.ip, one.laddr.port)
                for one in relative.net_connections("inet")
                if one.status == psutil.CONN_LISTEN
            }
    return found


def have_ended(processes: Iterable[psutil.Process]) -> bool:
    """Tell whether all of them have ended."""
    return not any(process.is_running() for process in processes)


async def _schedule(protocol: str, port: str) -> None:
    from serverless_bench.features.dask.cluster import QuietScheduler

    async with QuietScheduler(
        host="127.0.0.1", port=int(port), protocol=f"{protocol}://"
    ) as server:
        _say(server.address)
        await server.finished()


async def _work(address: str, slots: str, directory: str) -> None:
    from serverless_bench.features.dask.cluster import QuietWorker

    worker = QuietWorker(
        address, nthreads=int(slots), host="127.0.0.1", local_directory=directory, memory_limit=0
    )
    async with worker:
        _say(worker.address)
        await worker.finished()


def _say(address: str) -> None:
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    import dask.config

    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    what, *arguments = sys.argv[1:]
    asyncio.run(_schedule(*arguments) if what == "scheduler" else _work(*arguments))
