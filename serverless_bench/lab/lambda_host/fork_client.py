"""The host's end of one fork server."""

import asyncio
import json
import os
import socket
import subprocess
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from serverless_bench.lab.lambda_host.environment import not_started
from serverless_bench.lab.lambda_host.functions import LambdaFunction


class ForkClient:
    """Forks processes for one function's code and reports how each of them ended.

    Parameters
    ----------
    function
        Whose code it is.
    scratch
        Directory of the host; ``functions.PACKAGES`` in it holds the runtime's packages.
    log
        Where the fork server writes its own output.
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
        """Whether it can fork no more."""
        return self._reading is not None and self._reading.done()

    async def fork(self, order: dict[str, Any]) -> tuple[int, asyncio.Future[int]]:
        """Return a new process, and the future of its exit status (negative: a signal).

        Raises
        ------
        InitError
            If the machine gives no process, or the fork server has died.
        """
        await asyncio.shield(self._starting)
        number = next(self._numbers)
        self._starts[number] = asyncio.get_running_loop().create_future()
        started = self._starts[number]
        self._send({"fork": number, **order})
        return await started

    def kill(self, pid: int) -> None:
        """End a process and all that it started."""
        self._send({"kill": pid})

    async def stop(self) -> None:
        """End the fork server with all its processes, and wait for it."""
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
            self._process = subprocess.Popen(  # noqa: S603 - our own script
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
                    # With it: the next line may already say that it has ended.
                    self._starts.pop(message["fork"]).set_result((message["pid"], exited))
        for started in self._starts.values():
            started.set_exception(not_started(f"its parent has ended, see {self._log}"))
        self._starts.clear()
        # The kernel ends them with their parent.
        for ended in self._exits.values():
            ended.set_result(-9)
        self._exits.clear()
        if self._writer is not None:
            self._writer.close()
