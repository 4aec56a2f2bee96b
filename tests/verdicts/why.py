"""Rigs with known causes for ``sbench why``.

``python -m tests.verdicts.why DIRECTORY RIG ...`` runs them, keeps the runs in a directory, and
prints a row for each: the load of this machine, what was named, and the elasticities.
"""

import csv
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import serverless_bench as sbench
from serverless_bench.base.process import environment
from serverless_bench.features.compare.runs import free_path
from serverless_bench.features.custom.load import FunctionLoad
from serverless_bench.features.custom.pickling import pack
from serverless_bench.features.why.cause import BoundBy
from serverless_bench.features.why.interventions import CHANGES
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.target import Verify
from tests.stores.network import certificate
from tests.stores.servers import KEYS, loopback
from tests.verdicts import namespace
from tests.verdicts.proxy import Behaviour, proxy_of

SIZE: Final = 1 << 16
THREADS: Final = 4
FUNCTIONS: Final = 4
_PIPE: Final = "80mbit"
_LINK: Final = "20mbit"
_PACED: Final = Behaviour(connection_bytes_per_s=1_000_000)


def sleeping(tools: sbench.FunctionContext) -> None:
    """Put an object, and sleep for longer than that takes."""
    from serverless_bench.base.clock import sleep

    tools.put(tools.new_key(0))
    sleep(0.05)


def locking(tools: sbench.FunctionContext) -> None:
    """Put objects from threads that hold the GIL most of the time."""
    import ctypes
    import threading

    hold = ctypes.PyDLL(None).usleep

    def put(number: int) -> None:
        for _ in range(4):
            tools.put(tools.new_key(number))
            for _ in range(5):
                hold(2000)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pacing(tools: sbench.FunctionContext) -> None:
    """Put an object every 50 ms, by a schedule of its own."""
    from serverless_bench.base.clock import monotonic_ns, sleep

    tools.put(tools.new_key(0))
    sleep(0.05 - monotonic_ns() % 50_000_000 / 1e9)


def producing(tools: sbench.FunctionContext) -> None:
    """Put 100 items a second that another thread makes, with eight threads."""
    import queue
    import threading

    from serverless_bench.base.clock import sleep

    items: queue.Queue[int | None] = queue.Queue(1)

    def put() -> None:
        while (number := items.get()) is not None:
            tools.put(tools.new_key(number))

    threads = [threading.Thread(target=put) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(24):
        sleep(0.01)
        items.put(number % 4)
    for _ in threads:
        items.put(None)
    for thread in threads:
        thread.join()


def sleeping_threads(tools: sbench.FunctionContext) -> None:
    """Put objects from 16 threads, each of which sleeps for 90 % of its time."""
    import threading

    from serverless_bench.base.clock import sleep

    def put(number: int) -> None:
        for _ in range(5):
            tools.put(tools.new_key(number % 4))
            sleep(0.18)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A store or functions with a known bottleneck."""

    truth: tuple[BoundBy, ...]
    flags: tuple[str, ...] = ()
    """Flags of ``sbench serve``."""
    workload: str = "write"
    code: Callable[[sbench.FunctionContext], None] | None = None
    namespace: str = ""
    """Whether the kernel limits the rate: ``pipe`` or ``links``."""
    proxy: Behaviour | None = None
    """Behaviour of a proxy in front of the store."""
    one_cpu: bool = False
    """Whether the functions share a CPU that the store does not use."""
    tls: bool = False
    second: str = ""
    """Second endpoint: another ``store``, or another ``name`` of the same store."""
    size: int = SIZE
    threads: int = THREADS
    budget_s: float = 60.0
    job: Mapping[str, Any] = field(default_factory=dict)


RIGS: Final[Mapping[str, Rig]] = {
    "latency": Rig(truth=(BoundBy.LATENCY,), flags=("--latency", "fixed:60ms")),
    "latency read": Rig(
        truth=(BoundBy.LATENCY,), flags=("--latency", "fixed:60ms"), workload="read"
    ),
    "queue": Rig(truth=(BoundBy.QUEUE,), flags=("--queue", "4:fixed:15ms")),
    "queue read": Rig(truth=(BoundBy.QUEUE,), flags=("--queue", "4:fixed:15ms"), workload="read"),
    "connection": Rig(truth=(BoundBy.CONNECTION,), proxy=_PACED),
    "connection read": Rig(truth=(BoundBy.CONNECTION,), proxy=_PACED, workload="read"),
    "function": Rig(truth=(BoundBy.FUNCTION_NETWORK,), flags=("--function-rate", "3MiB")),
    "pipe": Rig(truth=(BoundBy.PIPE,), namespace="pipe", size=1 << 15),
    "links": Rig(truth=(BoundBy.FUNCTION_NETWORK,), namespace="links", size=1 << 15),
    "own": Rig(truth=(BoundBy.OWN_CODE,), workload="custom", code=sleeping),
    "own pace": Rig(truth=(BoundBy.OWN_WAIT,), workload="custom", code=pacing, size=4096),
    "own producer": Rig(
        truth=(BoundBy.OWN_WAIT,),
        flags=("--latency", "fixed:20ms"),
        workload="custom",
        code=producing,
        size=4096,
    ),
    "own threads": Rig(
        truth=(BoundBy.OWN_CODE, BoundBy.OWN_WAIT),
        flags=("--latency", "fixed:20ms"),
        workload="custom",
        code=sleeping_threads,
        size=4096,
    ),
    "latency parquet": Rig(
        truth=(BoundBy.LATENCY, BoundBy.CONNECTION),
        flags=("--latency", "fixed:60ms"),
        workload="parquet",
        size=1 << 20,
        threads=2,
        budget_s=360,
    ),
    "latency mixed": Rig(
        truth=(BoundBy.LATENCY, BoundBy.CONNECTION),
        flags=("--latency", "fixed:40ms"),
        workload="mixed",
        # The store makes up the first version of each object, and reads follow later ones.
        job={"transfer": sbench.Transfer(verify=Verify.NONE)},
        budget_s=120,
    ),
    "lock": Rig(truth=(BoundBy.LOCK,), workload="custom", code=locking),
    "machine": Rig(truth=(BoundBy.MACHINE, BoundBy.CPU), budget_s=120),
    "CPU": Rig(truth=(BoundBy.MACHINE, BoundBy.CPU), one_cpu=True, budget_s=120, size=4096),
    "latency tls": Rig(truth=(BoundBy.LATENCY,), flags=("--latency", "fixed:60ms"), tls=True),
    "account": Rig(
        truth=(BoundBy.QUEUE,),
        flags=("--queue", "4:fixed:15ms"),
        job={"layout": "sharded:4", "objects": 256},
    ),
    "prefix": Rig(
        truth=(BoundBy.PREFIX,),
        flags=("--put-limit", "40"),
        budget_s=240,
        size=1 << 14,
        threads=12,
        job={"layout": "sharded:4", "objects": 512},
    ),
    "endpoint": Rig(truth=(BoundBy.ENDPOINT,), flags=("--queue", "2:fixed:15ms"), second="store"),
    "endpoints": Rig(truth=(BoundBy.QUEUE,), flags=("--queue", "4:fixed:15ms"), second="name"),
}
_COLUMNS: Final = ("rig", "load", "result", "says", "block", "blocks", *CHANGES, "p", "folder")
"""Columns of the table; ``p`` is that of the change ``nothing``."""


@contextmanager
def workers_on_links(directory: Path, port: int) -> Iterator[str]:
    """Have a worker in each of several namespaces, and yield the store's address for all."""
    numbers = count()
    with ExitStack() as stack:
        url = ""
        for _ in range(FUNCTIONS):
            network = stack.enter_context(namespace.namespace())
            network.links = numbers
            inside = network.link(_LINK)
            here = inside.rpartition(".")[0] + f".{int(inside.rpartition('.')[2]) - 1}"
            url = url or f"http://{here}:{port}"
            route = ("ip", "-n", network.name, "route", "add", "default", "via", here)
            subprocess.run(route, check=True)
            command = [*network.command, sys.executable, "-m", "serverless_bench", "worker"]
            worker = subprocess.Popen(
                [*command, "--control", f"s3://test/{CONTROL_PREFIX}", "--endpoint-url", url],
                cwd=directory,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(worker.wait)
            stack.callback(worker.kill)
            assert worker.stdout is not None
            stack.callback(worker.stdout.close)
            assert worker.stdout.readline()
        yield url


@contextmanager
def on_cpu(number: int) -> Iterator[None]:
    """Let this process and its children use one CPU for the length of a block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {number})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def store_of(rig: Rig, directory: Path) -> Iterator[str]:
    """Yield the address of the store of a rig."""
    with ExitStack() as stack:
        if not rig.namespace:
            flags, log = ("--check", "none", *rig.flags), directory / "store.log"
            if rig.tls:
                pem = certificate(directory)
                stack.enter_context(environment({"AWS_CA_BUNDLE": str(pem)}))
                flags += ("--tls", str(pem))
            with on_cpu(1) if rig.one_cpu else nullcontext():
                url = stack.enter_context(loopback(*flags, log=log)).endpoint_url
            yield stack.enter_context(proxy_of(url, rig.proxy)) if rig.proxy else url
            return
        if rig.namespace == "links":
            flags, log = ("--check", "none", "--host", "0.0.0.0"), directory / "store.log"  # noqa: S104
            url = stack.enter_context(loopback(*flags, log=log)).endpoint_url
            yield stack.enter_context(workers_on_links(directory, int(url.rpartition(":")[2])))
            return
        network = stack.enter_context(namespace.namespace())
        address = network.link(_PIPE)
        command = [*network.command, sys.executable, "-m", "serverless_bench", "serve"]
        process = subprocess.Popen(
            [*command, "--check", "none", "--host", address, *rig.flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        assert process.stdout is not None
        stack.callback(process.stdout.close)
        yield process.stdout.readline().split()[-1]


@contextmanager
def second_of(rig: Rig, url: str, directory: Path) -> Iterator[tuple[str, ...]]:
    """Yield the second endpoint of a rig, if it has any."""
    if rig.second == "store":
        with loopback("--check", "none", *rig.flags, log=directory / "second.log") as store:
            yield (store.endpoint_url,)
        return
    yield (url.replace("127.0.0.1", "localhost"),) if rig.second else ()


def job_of(rig: Rig, url: str, *endpoints: str) -> sbench.JobSpec:
    """Return the job of a rig."""
    job = {"objects": THREADS, **rig.job}
    kind: type[sbench.Load] = sbench.Load
    load: dict[str, Any] = {"layout": job.pop("layout", "random")}
    if rig.workload == "mixed":
        load["mix"] = (("get", 9.0), ("put", 1.0))
    if rig.code is None:
        load["threads"] = rig.threads
    else:
        kind, load["code"] = FunctionLoad, pack(rig.code)
    target = sbench.Target(bucket="test", endpoint_url=url, region="us-east-1")
    polled = rig.namespace == "links"
    return sbench.JobSpec(
        workload=rig.workload,
        target=target,
        number=FUNCTIONS,
        concurrency=FUNCTIONS,
        size=None if rig.workload == "read" else rig.size,
        executor="workers" if polled else "local",
        control=replace(target, prefix=CONTROL_PREFIX) if polled else None,
        load=kind(**load),
        endpoints=endpoints,
        **job,
    )


def keys_of(rig: Rig) -> list[str]:
    """Return the keys to read; the store makes up any object."""
    if rig.workload != "read":
        return []
    return [f"sbench/{number:032x}.{SIZE}" for number in range(FUNCTIONS * THREADS)]


def check(name: str, directory: Path) -> sbench.Why:
    """Run a rig and return the answer."""
    rig = RIGS[name]
    with ExitStack() as stack:
        url = stack.enter_context(store_of(rig, directory))
        if rig.one_cpu:
            stack.enter_context(on_cpu(0))
        endpoints = stack.enter_context(second_of(rig, url, directory))
        job, where = job_of(rig, url, *endpoints), directory / "why"
        return sbench.why(job, where, keys=keys_of(rig), budget_s=rig.budget_s)


def main(directory: str, *names: str) -> None:
    """Run rigs one after the other, and print a row of a table for each."""
    os.environ.update(KEYS)
    for name in names:
        folder = free_path(Path(directory))
        folder.mkdir()
        load = os.getloadavg()[0]
        try:
            given = row_of(name, check(name, folder))
        except sbench.SbenchError as exc:
            given = {"result": f"refused: {exc}"}
        row = {"rig": name, "load": f"{load:.0f}", **given, "folder": folder.name}
        csv.DictWriter(sys.stdout, _COLUMNS).writerow(row)
        sys.stdout.flush()


def row_of(name: str, answer: sbench.Why) -> dict[str, str]:
    """Return what a run of a rig told."""
    named = answer.cause.names
    result = "undecided" if not named else "wrong"
    if set(named) & set(RIGS[name].truth):
        result = "named"
    return {
        "result": result,
        "says": answer.sentence.partition(". ")[0],
        "block": f"{answer.plan.block_s:.2f}",
        "blocks": f"{min(len(row.logs) for row in answer.rows.values())}",
        **{change: f"{row.value:.2f}" for change, row in answer.rows.items()},
        "p": f"{answer.rows['nothing'].p:.3f}",
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
