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
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from socket import gethostname
from typing import Any, ClassVar, Final
from weakref import finalize

import msgspec

from serverless_bench.errors import ExecutorError, PluginError, UsageError, one_line
from serverless_bench.executors.base import ExecutorInfo, NotReadyError, Readiness, RunProgress
from serverless_bench.executors.dask_worker import code_digest
from serverless_bench.executors.remote.executor import RemoteExecutor
from serverless_bench.executors.remote.host_process import LaunchingHost
from serverless_bench.executors.remote.launcher import Launcher, NotLaunchedError, Refusal
from serverless_bench.executors.remote.probing import NO_PROBE, probe_spec, tidy
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.types import at_least, check_types, wrong
from serverless_bench.process import without_credentials
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.schema import Count
from serverless_bench.units import NS_PER_S
from serverless_bench.version import __version__
from serverless_bench.worker.claims import PROBE
from serverless_bench.worker.probe import ProbeSpec
from serverless_bench.worker.rehearsal import rehearsal

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
_CERTIFICATE: Final = ("tls_ca_file", "tls_client_cert", "tls_client_key", "tls_ciphers")
_certificates: Final[dict[str, dict[str, str]]] = {}
"""By address of a scheduler, its client's part of Dask's ``Security``: file names, or the text."""


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

    @property
    def called(self) -> str:
        """What messages call it."""
        return f"Dask worker {self.address} on {self.host}"

    @classmethod
    def of(cls, address: str, about: str, **seen: Any) -> "DaskWorker":  # noqa: ANN401 - JSON
        """Return what a worker says of itself, checked: it may be anybody's.

        Parameters
        ----------
        address
            Of the worker.
        about
            What it says.
        **seen
            What Dask and its clock say.

        Raises
        ------
        ExecutorError
            If it is something else than a worker of this sbench says.
        """
        try:
            worker = cls(address=address, **json.loads(about), **seen)
            check_types(worker)
            at_least("slots", worker.slots, 1)
        except (RecursionError, TypeError, UsageError, ValueError) as exc:
            raise ExecutorError(
                f"Dask worker {one_line(address)} says something else than this sbench does: {exc}",
                hint=UPDATE,
            ) from exc
        return worker


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """What a process of a Dask worker has tried; see ``worker.probe``."""

    refused: str = ""
    ended: str = ""
    """How the process ended, if it came to no answer."""
    memory_mib: Count | None = None
    requests: dict[str, dict[str, Count]] = field(default_factory=dict)


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
                    f"{worker.called} has distributed {worker.distributed},"
                    f" here is {self.distributed}"
                )
            elif worker.code != ours:
                other = "other code of sbench" if worker.sbench == __version__ else "sbench"
                yield f"{worker.called} has {other} {worker.sbench}, here is {__version__}"


class DaskExecutor(RemoteExecutor):
    """Submits a task for each function, and finds what was measured below the control prefix.

    Parameters
    ----------
    job
        Has ``control``, and ``scheduler`` if the cluster is not to be on this machine; its
        ``concurrency`` is the most tasks at once, if there are as many slots.
    """

    info: ClassVar = ExecutorInfo(
        remote=True,
        writes_files=False,
        settings=frozenset({"scheduler", "slots", "probe", "control_prefix"}),
        examine="serverless_bench.executors.dask_checkup:cluster",
    )

    def __init__(self, job: JobSpec) -> None:
        check_place(job.scheduler, job.slots)
        super().__init__(job)
        self._connection: DaskConnection | None = None

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        job, cluster = self.job, self._connected().cluster
        most = min(job.at_once, cluster.slots)
        why = f"the cluster has {cluster.slots} slots for {job.at_once} functions"
        self.note_batches(progress, most, why)
        progress.notes += _clock_notes(cluster.workers)
        workers = [{name: getattr(worker, name) for name in _KEPT} for worker in cluster.workers]
        limits = {"slots": cluster.slots, "effective": most, "workers": workers}
        ready = Readiness(concurrency=most, limits=limits)
        return self._probed(ready, probe_spec(job, run_id, keys)) if job.probe else ready

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        # As long as outcomes are awaited the executor lives, and its cluster with it.
        yield from self.run_with(_Submitter(self.job, self._connected()), invocations, progress)

    def _probed(self, ready: Readiness, spec: ProbeSpec) -> Readiness:
        """Have a process of each worker try what the job needs."""
        connection = self._connected()
        workers = connection.cluster.workers
        specs = [replace(spec, number=number) for number in range(len(workers))]
        events = {
            worker.address: json.dumps({PROBE: asdict(one)})
            for worker, one in zip(workers, specs, strict=True)
        }
        try:
            answers = connection.probe(events, rehearsal(self.job))
        finally:
            left = tidy(specs)
        functions = [{"name": name, "billed_ms": 0, **asdict(answers[name])} for name in events]
        ready = replace(ready, probe={"functions": functions}, left=left)
        for worker in workers:
            answer = answers[worker.address]
            if problem := one_line(answer.refused or answer.ended):
                refused = ExecutorError(
                    f"{worker.called} may not do what this job needs: {problem}",
                    hint="functions have the credentials and the network of their Dask worker;"
                    f" {NO_PROBE}",
                )
                raise NotReadyError(refused, ready)
        return ready

    def _connected(self) -> "DaskConnection":
        """Return the connection to the cluster, which lasts as long as the executor."""
        if self._connection is None:
            job = self.job
            if job.control is None:
                raise UsageError(
                    "`executor` dask needs a place for records",
                    hint="`control_prefix` PREFIX, or s3://BUCKET/PREFIX",
                )
            connection = DaskConnection(job.scheduler, job.slots)
            try:
                _check_cluster(connection.cluster, job)
            except BaseException:
                connection.close()
                raise
            finalize(self, connection.close)
            self._connection = connection
        return self._connection


def dask_scheduler(cluster: Any) -> str:  # noqa: ANN401 - of any package
    """Return the address of a Dask cluster for ``scheduler`` of a job.

    The certificate in the cluster's ``security`` is used for this address from now on, as long
    as this process lives; it is not part of the job.

    Parameters
    ----------
    cluster
        Has ``scheduler_address`` and ``security``, as every cluster of Dask, dask-jobqueue,
        dask-cloudprovider and Coiled.

    Raises
    ------
    UsageError
        If it has no address, because it does not run.
    """
    address = str(cluster.scheduler_address)
    check_place(address, None)
    security = getattr(cluster, "security", None)
    _certificates[address] = {
        name: part for name in _CERTIFICATE if (part := getattr(security, name, None))
    }
    return address


def check_place(scheduler: str | None, slots: int | None) -> None:
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
        if slots is not None:
            raise wrong(
                "slots",
                "is for a cluster that is started, and `scheduler` names one that is there",
                hint="give one of them",
            )
    if slots is not None:
        at_least("slots", slots, 1)
    if find_spec("distributed") is None:
        raise PluginError(
            "executor 'dask' needs 'distributed', which is not installed",
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
                f"{far.called} cannot reach the embedded store of this machine",
                hint="name a `bucket`, with the `endpoint_url` of a store that it reaches",
            )


def _clock_notes(workers: Iterable[DaskWorker]) -> Iterator[str]:
    off: dict[str, float] = {}
    for worker in workers:
        if worker.clock_low_ns > _SKEW_NS or worker.clock_high_ns < -_SKEW_NS:
            off[worker.host] = (worker.clock_low_ns + worker.clock_high_ns) / 2 / NS_PER_S
    for host, seconds in off.items():
        yield f"the clock of {host} is {seconds:+.1f} s off this machine's; allowed for"


class DaskConnection(LaunchingHost):
    """A cluster, as long as it is open; one that it has started ends with it.

    Parameters
    ----------
    scheduler
        Address of a cluster that is there; None to start one on this machine.
    slots
        Functions at once of one that is started; None for four per processor.

    Raises
    ------
    ExecutorError
        If there is no cluster, or it has no workers.
    """

    def __init__(self, scheduler: str | None, slots: int | None) -> None:
        order = {
            "scheduler": scheduler,
            "slots": slots or _SLOTS_PER_CPU * (os.cpu_count() or 1),
            "security": _certificates.get(scheduler or "", {}),
        }
        # Workers that are started here have the driver's credentials from their parent.
        env = None if scheduler is None else without_credentials()
        super().__init__(_HOST, "no Dask cluster", _START_S, "cluster", order, env)
        self.submitted = 0
        """Tasks so far; ``finished`` of them are over."""

    @cached_property
    def cluster(self) -> DaskCluster:
        """The cluster as it was found.

        Raises
        ------
        ExecutorError
            If a worker says something else of itself than one of this sbench does.
        """
        workers = tuple(DaskWorker.of(**worker) for worker in self.about["workers"])
        return DaskCluster(**{**self.about, "workers": workers})

    def probe(self, events: Mapping[str, str], rehearsal: str) -> dict[str, ProbeAnswer]:
        """Return what a process of each worker answers to the probe.

        Parameters
        ----------
        events
            By address of the worker.
        rehearsal
            As in ``dask_worker.run_event``.

        Raises
        ------
        ExecutorError
            If one does not answer, or answers something else.
        """
        answers = self.ask("probed", probe=events, rehearsal=rehearsal)
        try:
            return {
                address: msgspec.json.decode(text, type=ProbeAnswer)
                for address, text in answers.items()
            }
        except msgspec.DecodeError as exc:
            raise self._failed(f"a worker answers the probe with something else: {exc}") from exc


class _Submitter(Launcher):
    """Submits tasks, and leaves the cluster to the next wave: it ends with the executor."""

    batch = 1_000

    def __init__(self, job: JobSpec, connection: DaskConnection) -> None:
        super().__init__(min(job.at_once, connection.cluster.slots))
        self._rehearsal = rehearsal(job)
        self._connection = connection

    def admit(self, wanted: int, in_flight: int) -> int:
        # A task is over before its record is found. One that never is, on a worker that hangs,
        # takes no slot any more when its function has been given up.
        unfinished = self._connection.submitted - self._connection.finished
        return super().admit(wanted, min(unfinished, in_flight))

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        made = [json.dumps(asdict(event)) for event in events()]
        self._connection.submitted += len(made)
        try:
            self._connection.ask("submitted", submit=made, rehearsal=self._rehearsal)
        except ExecutorError as exc:
            self._connection.submitted -= len(made)
            raise NotLaunchedError(str(exc)) from exc
        return 0

    def refusals(self) -> Iterator[Refusal]:
        return self._connection.refusals()
