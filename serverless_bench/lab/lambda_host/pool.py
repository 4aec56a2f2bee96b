"""Execution environments of each function: made, reused, replaced."""

import asyncio
import json
import uuid
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from serverless_bench.clock import utc_stamp
from serverless_bench.lab.lambda_host.counters import HostCounters
from serverless_bench.lab.lambda_host.environment import (
    Environment,
    InitError,
    InvokeRequest,
    InvokeResponse,
)
from serverless_bench.lab.lambda_host.fork_client import ForkClient
from serverless_bench.lab.lambda_host.functions import LATEST, LambdaFunction
from serverless_bench.lab.lambda_host.limits import EnvironmentLimits
from serverless_bench.lab.lambda_host.runtime_api import RuntimeApi
from serverless_bench.lab.lambda_host.settings import MIB_PER_CPU, HostSettings


@dataclass(slots=True, kw_only=True, eq=False)
class Shared:
    """What all pools of a host use."""

    settings: HostSettings
    scratch: Path
    """Directory that goes with the host."""
    logs: Path
    """Has a directory per function, and in it a file per environment."""
    runtime_api: RuntimeApi
    limits: EnvironmentLimits
    counters: HostCounters
    _tasks: set["asyncio.Task[Any]"] = field(default_factory=set)

    def begin(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something that nobody has to await."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class Pool:
    """Every environment of one function.

    Parameters
    ----------
    function
        What runs in them.
    host
        What all pools share.
    """

    def __init__(self, function: LambdaFunction, host: Shared) -> None:
        self.function = function
        self._host = host
        self._idle: list[Environment] = []
        self._all: set[Environment] = set()
        self.turn = asyncio.Lock()
        """For who hands over one event at a time."""
        self.logs: list[Path] = []
        """Of all that came to a first event, in order."""
        self._parent: ForkClient | None = None
        self._ended = False

    def __iter__(self) -> Iterator[Environment]:
        return iter(tuple(self._all))

    async def run(self, call: InvokeRequest, timeout_s: float) -> InvokeResponse:
        """Have an idle environment handle an event, the last used first, or a new one."""
        try:
            if not self._idle:
                await self.spawn()
        except InitError as exc:
            return exc.response
        # Nothing else can run, and so take a new one away, before this line.
        environment = self._idle.pop()
        response = await environment.invoke(call, timeout_s)
        if environment.alive and self._ended:
            await environment.end()
        elif environment.alive:
            self._idle.append(environment)
        return response

    async def spawn(self) -> None:
        """Have one more idle environment, which has requested its first event.

        Raises
        ------
        InitError
            If it does not come to that.
        """
        host = self._host
        if self._parent is None or self._parent.ended:
            log = self._directory() / "fork-server.log"
            function = self.function
            if host.settings.fresh:
                function = replace(function, preload=(), rehearse=())
            self._parent = ForkClient(function, host.scratch, log)
        stream = f"{utc_stamp()[:8]}/[{LATEST}]{uuid.uuid4().hex}"
        environment = Environment(
            function=self.function,
            stream=stream,
            log=self._directory() / f"{stream.replace('/', '_')}.log",
            kill=self._parent.kill,
            init_s=host.settings.init_s,
        )
        address = host.runtime_api.add(environment)
        host.counters.cold_starts += 1
        cpus = host.settings.cpus or self.function.memory_mib / MIB_PER_CPU
        limits = host.limits.new_limits(stream[-32:], self.function.memory_mib, cpus)
        try:
            environment.pid, environment.exited = await self._parent.fork(
                self._order(environment, f"{address}:{host.runtime_api.port}", limits)
            )
        except InitError:
            host.runtime_api.environments.pop(address)
            raise
        self._all.add(environment)
        host.counters.alive += 1
        host.counters.peak_alive = max(host.counters.peak_alive, host.counters.alive)
        environment.exited.add_done_callback(lambda _: self._on_exit(environment, address))
        await environment.started()
        host.counters.ready += 1
        host.counters.init_ms.append(environment.init_ms or 0.0)
        self.logs.append(environment.log)
        self._idle.append(environment)

    async def end(self) -> None:
        """End every environment, a busy one after its work, and the parent that they came from."""
        self._ended = True
        for environment in tuple(self._idle):
            await environment.end()
        if not self._all and self._parent is not None:
            await self._parent.stop()

    async def kill(self) -> None:
        """End everything at once."""
        self._ended = True
        if self._parent is not None:
            await self._parent.stop()

    def _on_exit(self, environment: Environment, address: str) -> None:
        self._host.runtime_api.environments.pop(address)
        self._all.discard(environment)
        self._host.counters.alive -= 1
        if environment in self._idle:
            self._idle.remove(environment)
        if self._ended and not self._all and self._parent is not None:
            self._host.begin(self._parent.stop())

    def _order(
        self, environment: Environment, runtime_api: str, limits: dict[str, Any]
    ) -> dict[str, object]:
        host, function = self._host, self.function
        command: list[str] = []
        if host.settings.fresh:
            settings = json.dumps(function.fork_settings(host.scratch))
            command = [*function.interpreter(), "fresh", settings, function.handler]
        return {
            "environment": function.variables(host.settings, environment.stream, runtime_api),
            "handler": function.handler,
            "directory": str(function.task_root),
            "log": str(environment.log),
            "command": command,
            **limits,
        }

    def _directory(self) -> Path:
        directory = self._host.logs / self.function.name.replace("/", "_")
        directory.mkdir(parents=True, exist_ok=True)
        return directory
