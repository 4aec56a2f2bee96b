"""Run functions on a Dask cluster: one that is there, or one that is started for the job.

Dask places them and restarts its workers, and is believed about nothing else: functions claim
their launch and leave their record in the store, and run in processes of ours
(``dask_worker``). Dask itself, its threads and its event loop, is in a process of its own
(``dask_host``).
"""

import json
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from queue import SimpleQueue
from socket import gethostname
from threading import Lock, Thread
from typing import Any, Final
from weakref import finalize

from serverless_bench import __version__
from serverless_bench.errors import ExecutorError, PluginError, UsageError
from serverless_bench.executors.base import Readiness, RunProgress
from serverless_bench.executors.dask_worker import code_digest
from serverless_bench.executors.rehearsal import rehearsal
from serverless_bench.executors.remote.executor import RemoteExecutor
from serverless_bench.executors.remote.host_process import HostProcess
from serverless_bench.executors.remote.launcher import NotLaunchedError
from serverless_bench.job.load import is_in_files
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.types import at_least, wrong
from serverless_bench.rundir.record import Outcome
from serverless_bench.units import NS_PER_S

_HOST: Final = "serverless_bench.executors.dask_host"
_START_S: Final = 180.0
"""Until a cluster stands, and each of its workers has said what it is."""
_SLOTS_PER_CPU: Final = 4
"""Functions at once per processor, of a cluster on this machine, if the user does not say; as
with ``local``."""
_ADDRESS: Final = re.compile(r"(tcp|tls)://[^\s/@]+:\d+")
UPDATE: Final = "install the same serverless-bench[dask] there, and start its worker again"
_KEPT: Final = ("address", "host", "slots", "cpus", "clock_low_ns", "clock_high_ns")
"""What a run keeps of each worker."""
_SKEW_NS: Final = NS_PER_S
"""A clock that is off by more is worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskWorker:
    """What a Dask worker says of itself, and how far its clock is from ours."""

    address: str
    slots: int
    """Tasks that it runs at once."""
    host: str
    sbench: str
    code: str
    """Stands for every source file of its sbench."""
    distributed: str
    python: str
    machine: str
    cpus: int
    memory_bytes: int
    free_bytes: int
    """For temporary files."""
    clock_low_ns: int
    clock_high_ns: int
    """Its clock minus ours lies in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskCluster:
    """A cluster as it is found: nobody's credentials, and no secrets."""

    scheduler: str
    workers: tuple[DaskWorker, ...]
    distributed: str
    """Here."""

    @property
    def slots(self) -> int:
        """Functions that it can run at once."""
        return sum(worker.slots for worker in self.workers)

    def problems(self) -> Iterator[str]:
        """Yield why workers cannot run our functions."""
        ours = code_digest()
        for worker in self.workers:
            if worker.distributed != self.distributed:
                yield (
                    f"Dask worker {worker.address} on {worker.host} has distributed"
                    f" {worker.distributed}, here is {self.distributed}"
                )
            elif worker.code != ours:
                other = "other code of sbench" if worker.sbench == __version__ else "sbench"
                yield (
                    f"Dask worker {worker.address} on {worker.host} has {other} {worker.sbench},"
                    f" here is {__version__}"
                )


class DaskExecutor(RemoteExecutor):
    """Submits a task for each function, and finds what was measured below the control prefix.

    Parameters
    ----------
    job
        Has ``control``, and ``scheduler`` or ``ssh_hosts`` if the cluster is not to be on this
        machine; its ``concurrency`` is the most tasks at once, if there are as many slots.
    """

    def __init__(self, job: JobSpec) -> None:
        check_place(job.scheduler, job.ssh_hosts, job.slots)
        if is_in_files(job.load):
            raise UsageError(
                "functions of a Dask cluster write no files, only objects",
                hint="leave `path` out, or `executor` local for files of this machine",
            )
        super().__init__(job)
        self._connection: DaskConnection | None = None

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        job, cluster = self._job, self._connected().cluster
        asked = min(job.concurrency, job.invocations)
        most = min(asked, cluster.slots)
        if most < asked:
            batches = -(-job.invocations // most)
            progress.notes.append(
                f"the cluster has {cluster.slots} slots for {asked} functions: {batches} batches"
                " instead of one"
            )
        progress.notes += _clock_notes(cluster.workers)
        workers = [{name: getattr(worker, name) for name in _KEPT} for worker in cluster.workers]
        limits = {"slots": cluster.slots, "effective": most, "workers": workers}
        return Readiness(concurrency=most, limits=limits)

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        # As long as outcomes are awaited the executor lives, and its cluster with it.
        yield from self._run(_Submitter(self._job, self._connected()), invocations, progress)

    def _connected(self) -> "DaskConnection":
        """Return the connection to the cluster, which lasts as long as the executor."""
        if self._connection is None:
            job = self._job
            if job.control is None:
                raise UsageError(
                    "`executor` dask needs a place for records",
                    hint="`control_prefix` PREFIX, or s3://BUCKET/PREFIX",
                )
            connection = DaskConnection(job.scheduler, job.ssh_hosts, job.slots)
            try:
                _check_cluster(connection.cluster, job)
            except BaseException:
                connection.close()
                raise
            finalize(self, connection.close)
            self._connection = connection
        return self._connection


def check_place(scheduler: str | None, ssh_hosts: Sequence[str], slots: int | None) -> None:
    """Refuse what names no cluster, or two.

    Raises
    ------
    UsageError
        If so.
    PluginError
        If Dask is not installed.
    """
    if scheduler is not None:
        if not _ADDRESS.fullmatch(scheduler):
            raise wrong(
                "scheduler",
                f"{scheduler!r} is no address",
                hint="as in tcp://10.0.0.1:8786, or tls:// with Dask's own TLS settings",
            )
        if ssh_hosts or slots is not None:
            name = "ssh_host" if ssh_hosts else "slots"
            raise wrong(
                name,
                "is for a cluster that is started, and `scheduler` names one that is there",
                hint="give one of them",
            )
    if slots is not None:
        at_least("slots", slots, 1)
    if not all(ssh_hosts):
        raise wrong("ssh_host", "is empty", hint="as in `ssh_host` node1")
    for library in ("distributed", *(["asyncssh"] if ssh_hosts else [])):
        if find_spec(library) is None:
            raise PluginError(
                f"executor 'dask' needs {library!r}, which is not installed",
                hint="pip install 'serverless-bench[dask]'",
            )


def _check_cluster(cluster: DaskCluster, job: JobSpec) -> None:
    """Refuse a cluster that cannot run a job."""
    if problem := next(cluster.problems(), None):
        raise ExecutorError(problem, hint=UPDATE)
    if job.target.store is not None:
        far = next((w for w in cluster.workers if w.host != gethostname()), None)
        if far is not None:
            raise ExecutorError(
                f"Dask worker {far.address} on {far.host} cannot reach the embedded store of"
                " this machine",
                hint="name a `bucket`, with the `endpoint_url` of a store that it reaches",
            )


def _clock_notes(workers: Iterable[DaskWorker]) -> Iterator[str]:
    off: dict[str, float] = {}
    for worker in workers:
        if worker.clock_low_ns > _SKEW_NS or worker.clock_high_ns < -_SKEW_NS:
            off[worker.host] = (worker.clock_low_ns + worker.clock_high_ns) / 2 / NS_PER_S
    for host, seconds in off.items():
        yield f"the clock of {host} is {seconds:+.1f} s off this machine's; allowed for"


class DaskConnection(HostProcess):
    """A cluster, as long as it is open; one that it has started ends with it.

    Parameters
    ----------
    scheduler
        Address of a cluster that is there; None to start one.
    ssh_hosts
        Hosts to start one on; this machine if there are none.
    slots
        Functions at once on each of its hosts; None for what suits them.

    Raises
    ------
    ExecutorError
        If there is no cluster, or it has no workers.
    """

    def __init__(self, scheduler: str | None, ssh_hosts: Sequence[str], slots: int | None) -> None:
        super().__init__(_HOST, "no Dask cluster", _START_S)
        if slots is None and not ssh_hosts:
            slots = _SLOTS_PER_CPU * (os.cpu_count() or 1)
        self._reader: Thread | None = None
        self._answers: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self._lock = Lock()
        self.unfinished = 0
        """Tasks that Dask has not said to be over."""
        try:
            self.send(scheduler=scheduler, ssh_hosts=list(ssh_hosts), slots=slots)
            found = self.await_message("workers")
        except BaseException:
            self.close()
            raise
        self.cluster = DaskCluster(
            scheduler=found["scheduler"],
            distributed=found["distributed"],
            workers=tuple(DaskWorker(**worker) for worker in found["workers"]),
        )
        # A daemon: Ctrl-C must not wait for a cluster.
        self._reader = Thread(target=self._listen, daemon=True)
        self._reader.start()

    def submit(self, events: Sequence[str], rehearsal: str) -> None:
        """Submit a task for each event.

        Raises
        ------
        NotLaunchedError
            If there is no cluster any more.
        """
        with self._lock:
            self.unfinished += len(events)
        self.send(submit=events, rehearsal=rehearsal)
        answer = self._answers.get()
        if "submitted" not in answer:
            with self._lock:
                self.unfinished -= len(events)
            if "ended" in answer:
                self._answers.put(answer)
            raise NotLaunchedError(f"the Dask cluster has gone: {answer['problem']}", 1)

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._stdin.close()
        if self._reader is not None:
            # It reads until the host has ended its cluster, and itself.
            self._reader.join()
        super().close()

    def _listen(self) -> None:
        for message in self.messages:
            if message is None:
                continue
            if "finished" in message:
                with self._lock:
                    self.unfinished -= message["finished"]
            else:
                self._answers.put(message)
        self._answers.put({"problem": self.problem, "ended": True})


class _Submitter:
    """Submits tasks; see ``remote.launcher``."""

    batch = 1_000
    threads = 1

    def __init__(self, job: JobSpec, connection: DaskConnection) -> None:
        self._most = min(job.concurrency, job.invocations, connection.cluster.slots)
        self._rehearsal = json.dumps(rehearsal(job))
        self._connection = connection

    def admit(self, wanted: int, in_flight: int) -> int:
        # A task is over before its record is found. One that never is, on a worker that hangs,
        # takes no slot any more when its function has been given up.
        return min(wanted, self._most - min(self._connection.unfinished, in_flight))

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        made = [json.dumps(asdict(event)) for event in events()]
        self._connection.submit(made, self._rehearsal)
        return 0

    def close(self) -> None:
        """Leave the cluster to the next wave; it ends with the executor."""
