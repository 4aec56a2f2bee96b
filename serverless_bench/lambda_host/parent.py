"""The host's end of one zygote."""

import asyncio
import json
import os
import socket
import subprocess
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from serverless_bench.lambda_host.functions import Function


class NotBornError(Exception):
    """An execution environment could not be made."""


class Parent:
    """Forks processes for one function's code and says how each of them ended.

    Parameters
    ----------
    function
        Whose code it is.
    scratch
        Directory of the host; ``functions.PACKAGES`` in it holds the runtime's packages.
    log
        What the zygote itself has to say goes here.
    """

    def __init__(self, function: Function, scratch: Path, log: Path) -> None:
        self._function = function
        self._scratch = scratch
        self._log = log
        self._numbers = count()
        self._births: dict[int, asyncio.Future[int]] = {}
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._starting: asyncio.Task[None] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether it can fork no more."""
        return self._hearing is not None and self._hearing.done()

    async def fork(self, order: dict[str, Any]) -> tuple[int, asyncio.Future[int]]:
        """Return a new process, and the future of its exit status (negative: a signal).

        Raises
        ------
        NotBornError
            If the machine gives no process, or the zygote has died.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        await asyncio.shield(self._starting)
        number = next(self._numbers)
        born = self._births[number] = asyncio.get_running_loop().create_future()
        self._tell({"fork": number, **order})
        pid = await born
        return pid, self._exits[pid]

    def kill(self, pid: int) -> None:
        """End a process and all that it started."""
        self._tell({"kill": pid})

    async def stop(self) -> None:
        """End the zygote with all its processes, and wait for it."""
        if self._writer is not None:
            self._tell({"end": True})
            self._writer.close()
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)
        if self._hearing is not None:
            await self._hearing

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        told = json.dumps(self._function.told(self._scratch))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                [*self._function.interpreter(), str(theirs.fileno()), told],
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
        self._hearing = asyncio.create_task(self._hear(reader))

    def _tell(self, message: dict[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")
        elif "fork" in message:
            self._births.pop(message["fork"]).set_exception(NotBornError("its parent has ended"))

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionResetError):
            while line := await reader.readline():
                self._take(json.loads(line))
        for born in self._births.values():
            born.set_exception(NotBornError(f"its parent has ended, see {self._log}"))
        self._births.clear()
        # The kernel ends them with their parent.
        for ended in self._exits.values():
            ended.set_result(-9)
        self._exits.clear()
        if self._writer is not None:
            self._writer.close()

    def _take(self, told: dict[str, Any]) -> None:
        if "error" in told:
            self._births.pop(told["fork"]).set_exception(NotBornError(told["error"]))
        elif "fork" in told:
            self._exits[told["pid"]] = asyncio.get_running_loop().create_future()
            self._births.pop(told["fork"]).set_result(told["pid"])
        else:
            self._exits.pop(told["pid"]).set_result(told["status"])
