"""Creation, reuse and replacement of the execution environments of each function."""

import asyncio
import json
import os
import socket
import subprocess
import uuid
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from serverless_bench.base.clock import utc_stamp
from serverless_bench.features.lambda_host.counters import HostCounters
from serverless_bench.features.lambda_host.environment import (
    Environment,
    InitError,
    InvokeRequest,
    InvokeResponse,
    not_started,
)
from serverless_bench.features.lambda_host.functions import LATEST, LambdaFunction
from serverless_bench.features.lambda_host.limits import EnvironmentLimits
from serverless_bench.features.lambda_host.runtime_api import RuntimeApi
from serverless_bench.features.lambda_host.settings import MIB_PER_CPU, HostSettings


class ForkClient:
    """Forks processes for a function's code and reports their exit.

    Parameters
    ----------
    function
        Function to run.
    scratch
        Directory of the host; ``functions.PACKAGES`` in it holds the runtime's packages.
    log
        Log file of the fork server.
    """

    def __init__(self, function: LambdaFunction, scratch: Path, log: Path) -> None:
        self._function = function
        self._scratch = scratch
        self._log = log
        self._numbers = count()
        self._starts: dict[int, asyncio.Future[tuple[int, asyncio.Future[int]]]] = {}
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._starting = asyncio.create_task(self._start())
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether it can no longer fork."""
        return self._reading is not None and self._reading.done()

    async def fork(self, order: dict[str, Any]) -> tuple[int, asyncio.Future[int]]:
        """Return a new process, and the future of the exit status (negative: a signal).

        Raises
        ------
        InitError
            If the machine provides no process, or the fork server has died.
        """
        await asyncio.shield(self._starting)
        number = next(self._numbers)
        self._starts[number] = asyncio.get_running_loop().create_future()
        started = self._starts[number]
        self._send({"fork": number, **order})
        return await started

    def kill(self, pid: int) -> None:
        """End a process and all processes started by it."""
        self._send({"kill": pid})

    async def stop(self) -> None:
        """End the fork server with all processes, and wait for it."""
        if self._writer is not None:
            self._send({"end": True})
            self._writer.close()
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)
        if self._reading is not None:
            await self._reading

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        settings = json.dumps(self._function.fork_settings(self._scratch))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._function.interpreter(), str(theirs.fileno()), settings],
                cwd=self._function.task_root,
                env={**os.environ, **self._function.environment},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        theirs.close()
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        self._reading = asyncio.create_task(self._read(reader))

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")
        elif "fork" in message:
            self._starts.pop(message["fork"]).set_exception(not_started("its parent has ended"))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionResetError):
            while line := await reader.readline():
                message = json.loads(line)
                if "status" in message:
                    self._exits.pop(message["pid"]).set_result(message["status"])
                elif "error" in message:
                    self._starts.pop(message["fork"]).set_exception(not_started(message["error"]))
                else:
                    exited = asyncio.get_running_loop().create_future()
                    self._exits[message["pid"]] = exited
                    # Set both together: the next line may already report the exit.
                    self._starts.pop(message["fork"]).set_result((message["pid"], exited))
        for started in self._starts.values():
            started.set_exception(not_started(f"its parent has ended, see {self._log}"))
        self._starts.clear()
        # The kernel kills the processes with their parent.
        for ended in self._exits.values():
            ended.set_result(-9)
        self._exits.clear()
        if self._writer is not None:
            self._writer.close()


@dataclass(slots=True, kw_only=True, eq=False)
class Shared:
    """Resources that all pools of a host use."""

    settings: HostSettings
    scratch: Path
    """Directory that is removed with the host."""
    logs: Path
    """Directory with a subdirectory per function, and a file per environment in it."""
    runtime_api: RuntimeApi
    limits: EnvironmentLimits
    counters: HostCounters
    _tasks: set["asyncio.Task[Any]"] = field(default_factory=set)

    def begin(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start a coroutine without a need to await it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class Pool:
    """All environments of a function.

    Parameters
    ----------
    function
        Function that runs in them.
    host
        Resources shared between pools.
    """

    def __init__(self, function: LambdaFunction, host: Shared) -> None:
        self.function = function
        self._host = host
        self._idle: list[Environment] = []
        self._all: set[Environment] = set()
        self.turn = asyncio.Lock()
        """Lock for callers that deliver one event at a time."""
        self.logs: list[Path] = []
        """Logs of all environments that requested a first event, in order."""
        self._parent: ForkClient | None = None
        self._ended = False

    def __iter__(self) -> Iterator[Environment]:
        return iter(tuple(self._all))

    async def run(self, call: InvokeRequest, timeout_s: float) -> InvokeResponse:
        """Have an idle environment handle an event, preferably the last used, or a new one."""
        try:
            if not self._idle:
                await self.spawn()
        except InitError as exc:
            return exc.response
        # No other task runs before this line and could take the new environment.
        environment = self._idle.pop()
        response = await environment.invoke(call, timeout_s)
        if environment.alive and self._ended:
            await environment.end()
        elif environment.alive:
            self._idle.append(environment)
        return response

    async def spawn(self) -> None:
        """Create an idle environment that has requested a first event.

        Raises
        ------
        InitError
            If the environment fails to start.
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
        """End all environments, busy ones after the work, and then the parent process."""
        self._ended = True
        for environment in tuple(self._idle):
            await environment.end()
        if not self._all and self._parent is not None:
            await self._parent.stop()

    async def kill(self) -> None:
        """End all processes immediately."""
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
