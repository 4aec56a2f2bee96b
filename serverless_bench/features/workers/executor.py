"""Run functions in workers that take events from the control prefix: ``sbench worker``.

The driver invokes nothing: an event is an object that a worker finds, claims and runs, on EC2, in a
container or on a laptop.
"""

import json
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import ClassVar, Final

from serverless_bench.base.errors import ExecutorError, OperationError, UsageError
from serverless_bench.executors.base import ExecutorInfo, RunProgress
from serverless_bench.features.remote.claims import event_name, for_events
from serverless_bench.features.remote.executor import LOCATE, RemoteExecutor
from serverless_bench.features.remote.launcher import Launcher, NotLaunchedError
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import Outcome
from serverless_bench.worker.object_io import ObjectIO

_THREADS: Final = 16
_TIMEOUT_S: Final = 60.0


class WorkersExecutor(RemoteExecutor):
    """Writes events below the control prefix, and reads the results there.

    Parameters
    ----------
    job
        Must have ``control``; its ``concurrency`` is the maximum number of waiting events.
    """

    info: ClassVar = ExecutorInfo(
        remote=True,
        locate=LOCATE,
        polled=True,
        writes_files=False,
        settings=frozenset({"control_prefix", "progress_objects"}),
    )

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        job = self.job
        if job.control is None:
            raise UsageError(
                "`executor` workers needs a control prefix for its events",
                hint="set `control_prefix` s3://BUCKET/PREFIX, as in --control of the workers",
            )
        return self.run_with(_EventWriter(job, job.control, progress), invocations, progress)


class _EventWriter(Launcher):
    """Writes events."""

    threads = _THREADS

    def __init__(self, job: JobSpec, control: Target, progress: RunProgress) -> None:
        super().__init__(job.max_concurrency)
        self._progress = progress
        self._events = ObjectIO(for_events(control))
        self._run_id = ""

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        (invocation,) = events()
        self._run_id = invocation.run_id
        # The run id comes first, because `sbench clean` reads only the beginning.
        event = {"run_id": invocation.run_id, **asdict(invocation)}
        name = event_name(invocation.run_id, invocation.index, invocation.launch)
        try:
            self._events.put(name, json.dumps(event).encode(), timeout_s=_TIMEOUT_S)
        except OperationError as exc:
            message = f"the event could not be written: {exc}"
            if exc.status == HTTPStatus.FORBIDDEN:
                raise ExecutorError(
                    message, hint="check the permissions of these credentials"
                ) from exc
            raise NotLaunchedError(message) from exc
        return 0

    def close(self) -> None:
        """Delete the events that no worker has claimed; the driver has given them up."""
        delete = partial(self._events.delete, etag="", timeout_s=_TIMEOUT_S)
        folder = f"{self._run_id}/"
        # Events that cannot be deleted now expire, and `sbench clean` deletes them.
        with (
            closing(self._events),
            ThreadPoolExecutor(_THREADS) as threads,
            suppress(OperationError),
        ):
            pages = self._events.list_pages(folder, timeout_s=_TIMEOUT_S)
            for names in pages if self._run_id else ():
                list(threads.map(delete, [folder + name for name in names]))
        self._progress.requests.update(self._events.requests)
