"""Run functions on a Dask cluster: an existing one, or one started for the job.

Dask only schedules the functions and restarts its workers; its reports are not trusted. Functions
claim their launch, write their record to the store, and run in separate processes
(``dask_worker``). Dask's client, with its threads and its event loop, runs in a separate process
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

from serverless_bench.base.errors import ExecutorError, PluginError, UsageError, one_line
from serverless_bench.base.process import without_credentials
from serverless_bench.base.units import NS_PER_S
from serverless_bench.executors.base import ExecutorInfo, NotReadyError, Readiness, RunProgress
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.dask.options import DaskOptions
from serverless_bench.features.dask.worker import code_digest
from serverless_bench.features.remote.claims import PROBE
from serverless_bench.features.remote.executor import LOCATE, RemoteExecutor
from serverless_bench.features.remote.host_process import LaunchingHost
from serverless_bench.features.remote.launcher import Launcher, NotLaunchedError, Refusal
from serverless_bench.features.remote.probe import NO_PROBE, ProbeSpec, probe_spec, tidy
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.types import at_least, check_types, wrong
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.schema import Count
from serverless_bench.version import __version__
from serverless_bench.worker.rehearsal import rehearsal

_HOST: Final = "serverless_bench.features.dask.host"
_START_S: Final = 180.0
"""Time limit for starting a cluster and describing all of its workers."""
_SLOTS_PER_CPU: Final = 4
"""Default number of concurrent functions per CPU, for a cluster on this machine; the same as
for ``local``."""
UPDATE: Final = "install the same serverless-bench[dask] there, and start its worker again"
_KEPT: Final = ("address", "host", "slots", "cpus", "clock_low_ns", "clock_high_ns")
"""Properties of each worker that a run keeps."""
_SKEW_NS: Final = NS_PER_S
"""Clock offset above which a note is added."""
_certificates: Final[dict[str, dict[str, str]]] = {}
"""Client settings of Dask's ``Security``, by address of a scheduler: file names, or the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskWorker:
    """Description of a Dask worker, and the offset of its clock."""

    address: str
    slots: int
    """Maximum number of concurrent tasks."""
    host: str
    sbench: str
    code: str
    """Digest of all source files of its sbench."""
    distributed: str
    python: str
    machine: str
    cpus: int
    memory_bytes: int
    free_bytes: int
    """Free space for temporary files."""
    clock_low_ns: int
    clock_high_ns: int
    """Bounds of its clock minus the driver's clock."""

    @property
    def called(self) -> str:
        """Name of the worker in messages."""
        return f"Dask worker {self.address} on {self.host}"

    @classmethod
    def from_description(cls, address: str, about: str, **seen: Any) -> "DaskWorker":
        """Return the validated description of a worker, which is untrusted input.

        Parameters
        ----------
        address
            Address of the worker.
        about
            JSON sent by the worker.
        **seen
            Values from Dask and from the clock measurement.

        Raises
        ------
        ExecutorError
            If it does not match the description of a worker with this version of sbench.
        """
        try:
            worker = cls(address=address, **json.loads(about), **seen)
            check_types(worker)
            at_least("slots", worker.slots, 1)
        except (RecursionError, TypeError, UsageError, ValueError) as exc:
            raise ExecutorError(
                f"Dask worker {one_line(address)} sent an invalid description: {exc}",
                hint=UPDATE,
            ) from exc
        return worker


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """Result of the probe in a process of a Dask worker; see ``features.remote.probe``."""

    refused: str = ""
    ended: str = ""
    """Description of the exit if the process ended without an answer."""
    memory_mib: Count | None = None
    requests: dict[str, dict[str, Count]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskCluster:
    """Description of a cluster, without credentials or secrets."""

    scheduler: str
    workers: tuple[DaskWorker, ...]
    distributed: str
    """Version on this machine."""

    @property
    def slots(self) -> int:
        """Maximum number of concurrent functions."""
        return sum(worker.slots for worker in self.workers)

    def problems(self) -> Iterator[str]:
        """Yield the reasons why workers cannot run the functions."""
        own_digest = code_digest()
        for worker in self.workers:
            if worker.distributed != self.distributed:
                yield (
                    f"{worker.called} has distributed {worker.distributed},"
                    f" here is {self.distributed}"
                )
            elif worker.code != own_digest:
                other = "other code of sbench" if worker.sbench == __version__ else "sbench"
                yield f"{worker.called} has {other} {worker.sbench}, here is {__version__}"


class DaskExecutor(RemoteExecutor):
    """Submits a task per function, and reads the results below the control prefix.

    Parameters
    ----------
    job
        Must have ``control``, and ``scheduler`` for a cluster that exists already; its
        ``concurrency`` is the maximum number of tasks, limited by the number of slots.
    """

    info: ClassVar = ExecutorInfo(
        remote=True,
        locate=LOCATE,
        writes_files=False,
        settings=frozenset({"scheduler", "slots", "probe", "control_prefix", "progress_objects"}),
        examine="serverless_bench.features.dask.checkup:cluster",
    )

    def __init__(self, job: JobSpec) -> None:
        options = DaskOptions.from_work(job)
        check_place(options.scheduler, options.slots)
        super().__init__(job)
        self._connection: DaskConnection | None = None

    def prepare(self, run_id: str, keys: Sequence[str], progress: RunProgress) -> Readiness:
        job, cluster = self.job, self._connected().cluster
        most = min(job.max_concurrency, cluster.slots)
        reason = f"the cluster has {cluster.slots} slots for {job.max_concurrency} functions"
        self.note_batches(progress, most, reason)
        for note in _clock_notes(cluster.workers):
            progress.note(note)
        workers = [{name: getattr(worker, name) for name in _KEPT} for worker in cluster.workers]
        limits = {"slots": cluster.slots, "effective": most, "workers": workers}
        ready = Readiness(concurrency=most, limits=limits)
        if not FunctionOptions.from_work(job).probe:
            return ready
        return self._probed(ready, probe_spec(job, run_id, keys))

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        # This generator keeps the executor alive, and thereby its cluster.
        yield from self.run_with(_Submitter(self.job, self._connected()), invocations, progress)

    def _probed(self, ready: Readiness, spec: ProbeSpec) -> Readiness:
        """Probe a process of each worker for the needs of the job."""
        connection = self._connected()
        workers = connection.cluster.workers
        specs = [replace(spec, number=number) for number in range(len(workers))]
        events = {
            worker.address: json.dumps({PROBE: asdict(probe)})
            for worker, probe in zip(workers, specs, strict=True)
        }
        try:
            answers = connection.probe(events, rehearsal(self.job))
        finally:
            remaining = tidy(specs)
        functions = [{"name": name, "billed_ms": 0, **asdict(answers[name])} for name in events]
        ready = replace(ready, probe={"functions": functions}, left=remaining)
        for worker in workers:
            answer = answers[worker.address]
            if problem := one_line(answer.refused or answer.ended):
                refused = ExecutorError(
                    f"{worker.called} lacks permissions that this job needs: {problem}",
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
                    "`executor` dask needs a control prefix for records",
                    hint="set `control_prefix` PREFIX, or s3://BUCKET/PREFIX",
                )
            options = DaskOptions.from_work(job)
            connection = DaskConnection(options.scheduler, options.slots)
            try:
                _check_cluster(connection.cluster, job)
            except BaseException:
                connection.close()
                raise
            finalize(self, connection.close)
            self._connection = connection
        return self._connection


def dask_scheduler(cluster: Any) -> str:
    """Return the address of a Dask cluster for ``scheduler`` of a job.

    The certificate in the cluster's ``security`` is used for this address until the process exits;
    it is not part of the job.

    Parameters
    ----------
    cluster
        An object with ``scheduler_address`` and ``security``, like every cluster of Dask,
        dask-jobqueue, dask-cloudprovider and Coiled.

    Raises
    ------
    UsageError
        If it has no address, because it is not running.
    """
    address = str(cluster.scheduler_address)
    check_place(address, None)
    security = getattr(cluster, "security", None)
    _certificates[address] = {
        name: part
        for name in ("tls_ca_file", "tls_client_cert", "tls_client_key", "tls_ciphers")
        if (part := getattr(security, name, None))
    }
    return address


def check_place(scheduler: str | None, slots: int | None) -> None:
    """Check that the settings name at most one cluster.

    Raises
    ------
    UsageError
        If the address is invalid, or both settings are given.
    PluginError
        If Dask is not installed.
    """
    if scheduler is not None:
        if not re.fullmatch(r"(tcp|tls)://[^\s/@]+:\d+", scheduler):
            raise wrong(
                "scheduler",
                f"{scheduler!r} is not an address",
                hint="write tcp://10.0.0.1:8786, or tls:// with Dask's TLS settings",
            )
        if slots is not None:
            raise wrong(
                "slots",
                "is for a new cluster, but `scheduler` names an existing one",
                hint="set only one of them",
            )
    if slots is not None:
        at_least("slots", slots, 1)
    if find_spec("distributed") is None:
        raise PluginError(
            "executor 'dask' needs 'distributed', which is not installed",
            hint="pip install 'serverless-bench[dask]'",
        )


def _check_cluster(cluster: DaskCluster, job: JobSpec) -> None:
    """Check that a cluster can run a job."""
    if problem := next(cluster.problems(), None):
        raise ExecutorError(problem, hint=UPDATE)
    if job.target.store is not None:
        remote_worker = next((w for w in cluster.workers if w.host != gethostname()), None)
        if remote_worker is not None:
            raise ExecutorError(
                f"{remote_worker.called} cannot reach the embedded store of this machine",
                hint="set `bucket`, and `endpoint_url` of a store that the worker can reach",
            )


def _clock_notes(workers: Iterable[DaskWorker]) -> Iterator[str]:
    off: dict[str, float] = {}
    for worker in workers:
        if worker.clock_low_ns > _SKEW_NS or worker.clock_high_ns < -_SKEW_NS:
            off[worker.host] = (worker.clock_low_ns + worker.clock_high_ns) / 2 / NS_PER_S
    for host, seconds in off.items():
        yield f"the clock of {host} is {seconds:+.1f} s off this machine's; corrected"


class DaskConnection(LaunchingHost):
    """An open connection to a cluster; a cluster that it has started stops with it.

    Parameters
    ----------
    scheduler
        Address of an existing cluster; None to start one on this machine.
    slots
        Concurrent functions of a cluster that is started; None for four per CPU.

    Raises
    ------
    ExecutorError
        If the cluster cannot be reached or started, or has no workers.
    """

    def __init__(self, scheduler: str | None, slots: int | None) -> None:
        order = {
            "scheduler": scheduler,
            "slots": slots or _SLOTS_PER_CPU * (os.cpu_count() or 1),
            "security": _certificates.get(scheduler or "", {}),
        }
        # Workers started here get the driver's credentials from their parent.
        env = None if scheduler is None else without_credentials()
        super().__init__(_HOST, "no Dask cluster", _START_S, "cluster", order, env)
        self.submitted = 0
        """Number of submitted tasks; ``finished`` of them are complete."""

    @cached_property
    def cluster(self) -> DaskCluster:
        """The description of the cluster at the start of the connection.

        Raises
        ------
        ExecutorError
            If the description of a worker is invalid.
        """
        workers = tuple(DaskWorker.from_description(**worker) for worker in self.about["workers"])
        return DaskCluster(**{**self.about, "workers": workers})

    def probe(self, events: Mapping[str, str], rehearsal: str) -> dict[str, ProbeAnswer]:
        """Return the answer to the probe of a process of each worker.

        Parameters
        ----------
        events
            Probe event by address of the worker.
        rehearsal
            See ``dask_worker.run_event``.

        Raises
        ------
        ExecutorError
            If a worker does not answer, or its answer is invalid.
        """
        answers = self.ask("probed", probe=events, rehearsal=rehearsal)
        try:
            return {
                address: msgspec.json.decode(text, type=ProbeAnswer)
                for address, text in answers.items()
            }
        except msgspec.DecodeError as exc:
            raise self._failed(f"a worker sent an invalid answer to the probe: {exc}") from exc


class _Submitter(Launcher):
    """Submits tasks; the cluster stays open for the next wave and stops with the executor."""

    batch = 1_000

    def __init__(self, job: JobSpec, connection: DaskConnection) -> None:
        super().__init__(min(job.max_concurrency, connection.cluster.slots))
        self._rehearsal = rehearsal(job)
        self._connection = connection

    def admit(self, wanted: int, in_flight: int) -> int:
        # A task ends before its record is found. A task that hangs on its worker releases its slot
        # when its function is given up.
        unfinished = self._connection.submitted - self._connection.finished
        return super().admit(wanted, min(unfinished, in_flight))

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        batch = [json.dumps(asdict(event)) for event in events()]
        self._connection.submitted += len(batch)
        try:
            self._connection.ask("submitted", submit=batch, rehearsal=self._rehearsal)
        except ExecutorError as exc:
            self._connection.submitted -= len(batch)
            raise NotLaunchedError(str(exc)) from exc
        return 0

    def refusals(self) -> Iterator[Refusal]:
        return self._connection.refusals()
