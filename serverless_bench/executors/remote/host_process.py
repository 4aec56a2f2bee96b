"""A process of its own for a library that runs functions: its threads stay out of the driver.

Driver and host talk in JSON lines over the host's standard input and output, and the host ends
when its input does: then the driver is gone, or wants no more.
"""

import json
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, BufferedWriter
from typing import Any, cast

from serverless_bench.errors import ExecutorError


class HostProcess:
    """The driver's end.

    Parameters
    ----------
    module
        What the host runs.
    failure
        How an error begins that says why it does not run.
    timeout_s
        How long it may be silent when an answer is due.
    """

    def __init__(self, module: str, failure: str, timeout_s: float) -> None:
        self._failure = failure
        self._timeout_s = timeout_s
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._stdin = cast("BufferedWriter", self._process.stdin)
        self._stdout = cast("BufferedReader", self._process.stdout)
        self.messages = self._read()
        """The messages of the host, and None whenever it was silent for a second."""
        self.problem = ""
        """Why the host ended before its time; empty as long as it did not."""
        self.hint = ""

    def close(self) -> None:
        """End the host, if it has not ended, and wait until it has."""
        # What was not sent because it has died need not be.
        with suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()
        self._process.wait()

    def send(self, **order: Any) -> None:  # noqa: ANN401 - JSON
        """Send the host a message."""
        # If it has died, `messages` shows it.
        with suppress(BrokenPipeError):
            self._stdin.write(json.dumps(order).encode() + b"\n")
            self._stdin.flush()

    def await_message(self, word: str) -> dict[str, Any]:
        """Return the next message of the host with ``word`` in it.

        Raises
        ------
        ExecutorError
            If it ends, complains, or is silent for too long.
        """
        silent_s = 0
        for message in self.messages:
            if message is None:
                silent_s += 1
                if silent_s > self._timeout_s:
                    break
            elif word in message:
                return message
            elif "problem" in message:
                raise self._failed(message["problem"], message["hint"])
        raise self._failed(self.problem or f"no answer for {self._timeout_s:g} s")

    def _failed(self, problem: str, hint: str = "") -> ExecutorError:
        return ExecutorError(f"{self._failure}: {problem}", hint=hint)

    def _read(self) -> Iterator[dict[str, Any] | None]:
        unread = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(1.0):
                    yield None
                    continue
                data = self._stdout.read1()
                if not data:
                    break
                *lines, unread = (unread + data).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    self.problem = message.get("problem", self.problem)
                    self.hint = message.get("hint", self.hint)
                    yield message
        self.problem = self.problem or f"its host process ended with {self._process.wait()}"
