"""Rigs with known causes for ``sbench why``; ``python -m tests.verdicts.why RIG ...`` runs them.

Each run prints a line with the load of this machine, the truth, the named causes, and the
elasticities.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import serverless_bench as sbench
from serverless_bench.driver.pickling import pack
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.process import environment
from serverless_bench.statistics.cause import BoundBy
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
    from serverless_bench.clock import sleep  # noqa: PLC0415 - pickled

    tools.put(tools.new_key(0))
    sleep(0.05)


def locking(tools: sbench.FunctionContext) -> None:
    """Put objects from threads that hold the interpreter lock most of the time."""
    import ctypes  # noqa: PLC0415 - pickled
    import threading  # noqa: PLC0415 - pickled

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
    one_processor: bool = False
    """Whether the functions share a processor that the store does not use."""
    tls: bool = False
    size: int = SIZE
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
    "pipe": Rig(truth=(BoundBy.PIPE,), namespace="pipe"),
    "links": Rig(truth=(BoundBy.FUNCTION_NETWORK,), namespace="links"),
    "own": Rig(truth=(BoundBy.OWN_CODE,), workload="function", code=sleeping),
    "lock": Rig(truth=(BoundBy.LOCK,), workload="function", code=locking),
    "machine": Rig(truth=(BoundBy.MACHINE, BoundBy.PROCESSOR)),
    "processor": Rig(
        truth=(BoundBy.MACHINE, BoundBy.PROCESSOR), one_processor=True, budget_s=120, size=4096
    ),
    "latency tls": Rig(truth=(BoundBy.LATENCY,), flags=("--latency", "fixed:60ms"), tls=True),
    "account": Rig(
        truth=(BoundBy.QUEUE,),
        flags=("--queue", "4:fixed:15ms"),
        job={"layout": "sharded:4", "objects": 16},
    ),
    "prefix": Rig(
        truth=(BoundBy.PREFIX,),
        flags=("--put-limit", "20"),
        budget_s=120,
        job={"layout": "sharded:4", "objects": 16},
    ),
}


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
            assert worker.stdout.readline()
        yield url


@contextmanager
def on_processor(number: int) -> Iterator[None]:
    """Let this process and its children use one processor for the length of a block."""
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
            with on_processor(1) if rig.one_processor else nullcontext():
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
        yield process.stdout.readline().split()[-1]


def job_of(rig: Rig, url: str) -> sbench.JobSpec:
    """Return the job of a rig."""
    job = {"objects": THREADS, **rig.job}
    load: dict[str, Any] = {"layout": job.pop("layout", "random")}
    if rig.code is None:
        load["threads"] = THREADS
    else:
        load["code"] = pack(rig.code)
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
        load=sbench.Load(**load),
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
        if rig.one_processor:
            stack.enter_context(on_processor(0))
        where = directory / "why"
        return sbench.why(job_of(rig, url), where, keys=keys_of(rig), budget_s=rig.budget_s)


def main(*names: str) -> None:
    """Run rigs one after the other, and print a line for each."""
    os.environ.update(KEYS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            load = os.getloadavg()[0]
            try:
                answer = check(name, Path(folder))
            except sbench.SbenchError as exc:
                _say(f"{name}: load {load:.0f}: failed: {exc}")
                continue
        named = answer.cause.names
        result = "undecided" if not named else "wrong"
        if named and set(named) & set(RIGS[name].truth):
            result = "named"
        rows = ", ".join(
            f"{change} {row.value:+.2f} [{row.interval[0]:+.2f} {row.interval[1]:+.2f}]"
            for change, row in answer.rows.items()
        )
        _say(
            f"{name}: load {load:.0f}: {result}: {answer.sentence[:90]} | block"
            f" {answer.plan.block_s:.2f}, own {answer.own_share:.2f},"
            f" n {min(len(row.logs) for row in answer.rows.values())} | {rows}"
            f" | p(nothing) {answer.rows['nothing'].p:.3f}"
        )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
