"""Run functions with Lithops, on the configured backend.

Lithops runs in a separate process (``lithops_host``): its threads, alarms, exit hooks and 80 MiB of
imports stay out of the driver, and when the driver dies, the host stops Lithops' local processes.
Vendor terms are confined to these two files.
"""

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Final

from serverless_bench.base.errors import ExecutorError, PluginError, UsageError
from serverless_bench.executors.base import GRACE_S, ExecutorInfo, RunProgress, read_record
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.aws.stack.template import check_memory
from serverless_bench.features.lithops.options import FUNCTIONS, LONGEST_S, LithopsOptions
from serverless_bench.features.remote.executor import LOCATE, RemoteExecutor
from serverless_bench.features.remote.host_process import LaunchingHost
from serverless_bench.features.remote.launcher import Launcher
from serverless_bench.features.remote.options import RemoteOptions
from serverless_bench.features.remote.stop import signed
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import Lost, Outcome

_LOCAL: Final = "localhost"
_CONFIGURATION: Final = Path(".lithops_config")
"""File of the current folder that Lithops prefers to the user's configuration."""
_NAMED: Final = frozenset({"LITHOPS_CONFIG", "LITHOPS_CONFIG_FILE"})
"""Variables with a configuration or the name of its file: Lithops then ignores other files."""
_HOST: Final = "serverless_bench.features.lithops.host"
_DEPLOY_S: Final = 120.0
"""Time limit for the first deployment of a Lithops runtime."""


class LithopsExecutor(RemoteExecutor):
    """Runs one Lithops map per job.

    Parameters
    ----------
    job
        Its ``concurrency`` becomes Lithops' limit of workers, its ``deadline`` the timeout of a
        function; both are set explicitly, because the defaults (1,000 workers, 180 seconds)
        terminate jobs silently.
    """

    info: ClassVar = ExecutorInfo(
        remote=True,
        locate=LOCATE,
        billed=True,
        settings=frozenset(
            {"memory", "arch", "control_prefix", "progress_objects", "lithops_keys"}
        ),
    )

    def __init__(self, job: JobSpec) -> None:
        if find_spec("lithops") is None:
            raise PluginError(
                "executor 'lithops' needs 'lithops', which is not installed",
                hint="pip install 'serverless-bench[lithops]'",
            )
        _check_configuration()
        check_memory(FunctionOptions.from_work(job).memory)
        super().__init__(job)

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        with closing(_Host(self.job)) as host:
            if host.about == _LOCAL or self.job.control is None:
                yield from self._follow(host, invocations, progress)
            else:
                for note in limits(host.about, self.job):
                    progress.note(note)
                yield from self.run_with(host, invocations, progress)

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> Generator[Outcome, None, None]:
        """Recover functions in the cloud; local functions have died with their driver."""
        # Only a host can determine the backend in Lithops' configuration.
        host = _Host(self.job)
        host.close()
        if host.about != _LOCAL and self.job.control is not None:
            yield from super().recover(invocations, progress, since_ns, known)

    def _follow(
        self, host: "_Host", invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        """Let Lithops run functions on this machine, and receive records from it."""
        specs = [*invocations]
        if not specs:
            return
        with signed(self.job, specs[0], progress) as sign:
            yield from self._answers(
                host, [spec if sign is None else sign.event(spec) for spec in specs], progress
            )

    def _answers(
        self, host: "_Host", specs: Sequence[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        """Yield the outcomes of functions on this machine."""
        job = self.job
        waiting = {spec.index: spec for spec in specs}
        timeout_s = job.deadline + 2 * GRACE_S
        host.send(invocations=[asdict(spec) for spec in waiting.values()])
        clock = progress.clock
        submitted_ns = clock.now_ns()
        message = host.answer(_DEPLOY_S + timeout_s)
        while "problem" not in message:
            progress.started = max(progress.started, message.get("started", 0))
            submitted_ns = message.get("submitted_ns", submitted_ns)
            if "index" in message:
                spec = waiting.pop(message["index"])
                result = (
                    Lost(index=spec.index, launch=spec.launch, cause=message["lost"])
                    if "lost" in message
                    else read_record(message["record"], spec.index, spec.launch)
                )
                yield Outcome(submitted_ns=submitted_ns, collected_ns=clock.now_ns(), result=result)
            if not waiting:
                return
            message = host.answer(timeout_s)
        problem = host.problem
        if len(waiting) == job.number and problem:
            raise ExecutorError(f"Lithops could not start: {problem}", hint=host.hint)
        for spec in waiting.values():
            cause = problem or f"no response from Lithops for {timeout_s:g} s"
            lost = Lost(index=spec.index, launch=spec.launch, cause=cause)
            yield Outcome(submitted_ns=submitted_ns, collected_ns=clock.now_ns(), result=lost)


class _Host(LaunchingHost, Launcher):
    """The process that runs Lithops, and launches functions.

    After the launch, only reports of rejected events are used from Lithops: a call that it lost
    counts as one that has not started in time.

    Parameters
    ----------
    job
        Its ``concurrency`` is the maximum number of functions in flight.
    """

    batch = 10_000

    def __init__(self, job: JobSpec) -> None:
        self.most = job.max_concurrency
        order = {
            "concurrency": self.most,
            "timeout_s": round(job.deadline + GRACE_S),
            "event_age_s": round(RemoteOptions.from_work(job).start_timeout),
            "keys": LithopsOptions.from_work(job).lithops_keys,
        }
        # An invalid Lithops configuration produces only an error message.
        super().__init__(_HOST, "Lithops could not start", _DEPLOY_S, "backend", order)

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        self.ask("launched", launch=[asdict(spec) for spec in events()])
        return 0


def limits(backend: str, job: JobSpec) -> Iterator[str]:
    """Yield notes about functions that stop or start later than a job allows."""
    longest_s, start_s = (
        LONGEST_S.get(backend, job.deadline),
        RemoteOptions.from_work(job).start_timeout,
    )
    if job.deadline > longest_s:
        yield (
            f"{backend} ends a function after {longest_s:g} s, so functions stop shortly before,"
            f" not after {job.deadline:g} s (`deadline`)"
        )
    # It may start an instance or a pod for a function.
    if backend not in {*FUNCTIONS, "gcp_cloudrun"} and start_s <= 60:
        yield (
            f"{backend} may start functions only after minutes, and they are launched again after"
            f" {start_s:g} s: set `start_timeout` 600"
        )


def _check_configuration() -> None:
    """Reject a configuration in the current folder, unless the user names it.

    It can name programs to run, and another person may have written it.
    """
    if _NAMED.isdisjoint(os.environ) and _CONFIGURATION.exists():
        raise UsageError(
            f"Lithops would be configured by {_CONFIGURATION.absolute()}, which you have not named",
            hint="export LITHOPS_CONFIG_FILE=.lithops_config, or another file",
        )
