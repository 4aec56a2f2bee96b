"""Launch and clean up from far away: each answer is 100 ms late.

Prints the number of events per second that a driver sends to an endpoint that accepts them without
work, the number of objects per second that `sbench clean` deletes, and CPU time for each.

    python -m benchmarks.far [--events N] [--objects N]
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any, Final

from benchmarks.common import cpu_s, make_parser, run_alone
from serverless_bench import clean, run_job
from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.driver.cleanup import THREADS
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.aws_lambda.executor import _Invoker
from serverless_bench.features.loopback.process import served
from serverless_bench.features.remote.launcher import NotLaunchedError
from serverless_bench.features.remote.thread_pool import Completions, ThreadPool, handle_completions
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from tests.clouds.far_lambda import FarLambda
from tests.clouds.lambda_hosts import KEYS
from tests.stores.servers import credentials

SMALLEST: Final = (100, 100)
"""Events and objects."""
COLUMNS: Final = ("what", "number", "a second", "CPU-ms each", "under way at most")


def parser() -> Any:
    """Return the parser of the command line."""
    return make_parser(__doc__, events=1000, objects=10_000)


def main() -> None:
    """Make the table."""
    flags = parser().parse_args()
    events, objects = SMALLEST if flags.smallest else (flags.events, flags.objects)
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"| --- |{' ---: |' * (len(COLUMNS) - 1)}")
    with FarLambda() as far, credentials({**KEYS, "AWS_ENDPOINT_URL_LAMBDA": far.url}):
        launched = run_alone("benchmarks.far", events)
    show("events launched", events, launched, far.most_under_way)
    show("objects cleaned up", objects, cleaning(objects), THREADS)


def show(what: str, number: int, figures: Sequence[float], under_way: int) -> None:
    """Print one row."""
    took_s, used_s = figures
    cells = (f"{number / took_s:.0f}", f"{used_s / number * 1e3:.2f}", str(under_way))
    print(f"| {what} | {number} | {' | '.join(cells)} |", flush=True)


def launch(number: int) -> tuple[float, float]:
    """Return seconds, and CPU seconds, to send so many events."""
    target = Target(bucket="any", endpoint_url="http://127.0.0.1:1")
    job = JobSpec(
        workload="noop",
        target=target,
        control=replace(target, prefix="control/"),
        executor="lambda",
        number=number,
        concurrency=number,
        options={"function": ("f",)},
    )
    specs = list(invocation_specs(job, run_id="run", created_ns=wall_ns()))
    launched = 0

    def on_launched(refusals: int) -> None:
        nonlocal launched
        launched += 1
        assert not refusals

    completions: Completions = Queue()
    launcher = _Invoker(job, RunProgress(), None)
    began_ns, before_s = monotonic_ns(), cpu_s()
    pool = ThreadPool(launcher.threads, completions)
    for spec in specs:
        launch_it = partial(launcher.launch, partial(iter, (spec,)))
        pool.submit(launch_it, on_launched, NotLaunchedError, _raise)
    while launched < number:
        list(handle_completions(completions, 0.04))
    took_s, used_s = (monotonic_ns() - began_ns) / 1e9, cpu_s() - before_s
    pool.shut_down()
    launcher.close()
    return took_s, used_s


def cleaning(number: int) -> tuple[float, float]:
    """Return seconds, and CPU seconds, to delete the objects of a run."""
    with tempfile.TemporaryDirectory() as scratch, served("--latency", "fixed:100ms") as url:
        job = JobSpec(
            workload="write",
            target=Target(bucket="any", endpoint_url=url),
            number=1,
            objects=number,
            load=Load(threads=128),
            size=1024,
        )
        run = run_job(job, Path(scratch) / "run")
        began_ns, before_s = monotonic_ns(), cpu_s()
        assert clean(run).deleted.objects == number
        return (monotonic_ns() - began_ns) / 1e9, cpu_s() - before_s


def _raise(error: NotLaunchedError) -> None:
    raise error


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(list(launch(int(sys.argv[2]))), flush=True)
    else:
        main()
