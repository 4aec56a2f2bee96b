"""Rigs with known causes for ``sbench why``; ``python -m tests.verdicts.why RIG ...`` runs them.

Each run prints a line with the load of this machine, the truth, what was named, and the
elasticities.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import serverless_bench as sbench
from serverless_bench.driver.pickling import pack
from serverless_bench.statistics.cause import BoundBy
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
    """Put objects from threads that hold the interpreter's lock most of the time."""
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
    """Of ``sbench serve``."""
    workload: str = "write"
    code: Callable[[sbench.FunctionContext], None] | None = None
    namespace: str = ""
    """Whether the kernel limits the rate: ``pipe`` or ``links``."""
    proxy: Behaviour | None = None
    """Of a proxy in front of the store."""
    job: Mapping[str, Any] = field(default_factory=dict)


RIGS: Final[Mapping[str, Rig]] = {
    "latency": Rig(truth=(BoundBy.LATENCY,), flags=("--latency", "fixed:60")),
    "latency read": Rig(truth=(BoundBy.LATENCY,), flags=("--latency", "fixed:60"), workload="read"),
    "queue": Rig(truth=(BoundBy.QUEUE,), flags=("--queue", "4:fixed:15")),
    "queue read": Rig(truth=(BoundBy.QUEUE,), flags=("--queue", "4:fixed:15"), workload="read"),
    "connection": Rig(truth=(BoundBy.CONNECTION,), proxy=_PACED),
    "connection read": Rig(truth=(BoundBy.CONNECTION,), proxy=_PACED, workload="read"),
    "function": Rig(truth=(BoundBy.FUNCTION_NETWORK,), flags=("--function-rate", "3")),
    "pipe": Rig(truth=(BoundBy.PIPE,), namespace="pipe"),
    "links": Rig(truth=(BoundBy.FUNCTION_NETWORK,), namespace="links"),
    "own": Rig(truth=(BoundBy.OWN_CODE,), workload="function", code=sleeping),
    "lock": Rig(truth=(BoundBy.LOCK,), workload="function", code=locking),
    "machine": Rig(truth=(BoundBy.MACHINE, BoundBy.PROCESSOR)),
    "prefix": Rig(
        truth=(BoundBy.PREFIX,),
        flags=("--put-limit", "100"),
        job={"layout": "sharded:4", "objects": 16},
    ),
}


@contextmanager
def store_of(rig: Rig, directory: Path) -> Iterator[str]:
    """Yield the address of the store of a rig."""
    with ExitStack() as stack:
        if not rig.namespace:
            log = directory / "store.log"
            url = stack.enter_context(loopback("--check", "none", *rig.flags, log=log)).endpoint_url
            yield stack.enter_context(proxy_of(url, rig.proxy)) if rig.proxy else url
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
    return sbench.JobSpec(
        workload=rig.workload,
        target=sbench.Target(bucket="test", endpoint_url=url, region="us-east-1"),
        number=FUNCTIONS,
        concurrency=FUNCTIONS,
        size=None if rig.workload == "read" else SIZE,
        load=sbench.Load(**load),
        **job,
    )


def keys_of(rig: Rig) -> list[str]:
    """Return the keys to read; the store makes up any object."""
    if rig.workload != "read":
        return []
    return [f"sbench/{number:032x}.{SIZE}" for number in range(FUNCTIONS * THREADS)]


def check(name: str, budget_s: float, directory: Path) -> sbench.Why:
    """Run a rig and return the answer."""
    rig = RIGS[name]
    with store_of(rig, directory) as url:
        return sbench.why(job_of(rig, url), directory / "why", keys=keys_of(rig), budget_s=budget_s)


def main(*names: str, budget_s: float = 60.0) -> None:
    """Run rigs one after the other, and print a line for each."""
    os.environ.update(KEYS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            load = os.getloadavg()[0]
            try:
                answer = check(name, budget_s, Path(folder))
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
            f" {answer.block_s:.2f}, own {answer.own_share:.2f},"
            f" n {min(len(row.logs) for row in answer.rows.values())} | {rows}"
            f" | p(nothing) {answer.rows['nothing'].p:.3f}"
        )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
