"""A separate process for a library that runs functions: its threads stay out of the driver.

Driver and host exchange JSON lines over the host's standard input and output. The host exits when
its input is closed, because the driver has exited or needs no more.
"""

import json
import os
import pickletools
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from io import BufferedReader, BufferedWriter
from itertools import takewhile
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Event, Lock, Thread
from typing import Any, Final, cast

from serverless_bench.base.errors import ExecutorError, SbenchError, one_line
from serverless_bench.executors.base import keys_for_children
from serverless_bench.features.remote.launcher import Refusal

_PLUMBING: Final = frozenset(
    {
        *("builtins", "tblib.pickling_support", "unpickle_exception"),
        *("unpickle_exception_with_attrs", "__dict__", "args", "HANDLER"),
    }
)
"""Texts in a pickled exception that belong to neither type nor message (tblib's, Lithops')."""
_LONGEST: Final = 300
"""Maximum length of an error in characters: some name every file that could not be copied."""


class LaunchingHost:
    """The driver's end: it submits events, and later receives the rejected ones.

    Parameters
    ----------
    module
        Module that the host runs.
    failure
        Start of the error message if it does not run.
    timeout_s
        Time limit for an answer.
    word, order
        Key of the first answer, and the first order.
    env
        Environment of the host; None for the driver's, with its credentials.

    Raises
    ------
    ExecutorError
        If it cannot execute its first order; it has exited then.
    """

    def __init__(
        self,
        module: str,
        failure: str,
        timeout_s: float,
        word: str,
        order: Mapping[str, Any],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._failure = failure
        self._timeout_s = timeout_s
        self._keys = ExitStack()
        if env is None:
            env = {**os.environ, **self._keys.enter_context(keys_for_children())}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
        self._stdin = cast("BufferedWriter", self._process.stdin)
        self._stdout = cast("BufferedReader", self._process.stdout)
        self.problem = ""
        """Reason for which the host exited early; empty otherwise."""
        self.hint = ""
        self.finished = 0
        """Number of completed events reported by the host."""
        self._answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._refusals: SimpleQueue[Refusal] = SimpleQueue()
        # A daemon thread, because Ctrl-C must not wait for a cluster.
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.about = self.ask(word, **order)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the host if it still runs, and wait for the exit."""
        # Unsent data does not matter if the host has died.
        with suppress(BrokenPipeError):
            self._stdin.close()
        # It runs until the host has exited.
        self._reader.join()
        self._stdout.close()
        self._process.wait()
        self._keys.close()

    def send(self, **order: Any) -> None:
        """Send the host a message."""
        # If it has died, the next answer reports that.
        with suppress(BrokenPipeError):
            self._stdin.write(json.dumps(order).encode() + b"\n")
            self._stdin.flush()

    def answer(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Return the next message of the host, or ``problem`` and ``hint`` without one."""
        timeout_s = timeout_s or self._timeout_s
        try:
            answer = self._answers.get(timeout=min(timeout_s, TIMEOUT_MAX))
        except Empty:
            return {"problem": f"no answer for {timeout_s:g} s", "hint": ""}
        if "ended" in answer:
            self._answers.put(answer)
        return answer

    def ask(self, word: str, **order: Any) -> Any:
        """Send an order and return the value of ``word`` in its answer.

        Raises
        ------
        ExecutorError
            If the host exits, reports an error, or is silent for too long.
        """
        self.send(**order)
        answer = self.answer()
        if word not in answer:
            raise self._failed(answer["problem"], answer.get("hint", ""))
        return answer[word]

    def refusals(self) -> Iterator[Refusal]:
        """Yield the events that were rejected since the last call."""
        while not self._refusals.empty():
            yield self._refusals.get()

    def _read(self) -> None:
        # A killed host may leave an incomplete line.
        for line in takewhile(lambda line: line.endswith(b"\n"), self._stdout):
            message = json.loads(line)
            if "refused" in message:
                self._refusals.put(Refusal(**message["refused"]))
            elif "finished" in message:
                self.finished += message["finished"]
            else:
                self.problem = message.get("problem", self.problem)
                self.hint = message.get("hint", self.hint)
                self._answers.put(message)
        self.problem = self.problem or f"its host process ended with {self._process.wait()}"
        self._answers.put({"problem": self.problem, "hint": self.hint, "ended": True})

    def _failed(self, problem: str, hint: str = "") -> ExecutorError:
        return ExecutorError(f"{self._failure}: {problem}", hint=hint)


class Driver:
    """The host's end: receives orders and sends messages; threads may share it."""

    def __init__(self) -> None:
        # Output of a library must not reach the driver.
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._lock = Lock()
        self._orders: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.gone = Event()
        """Set when the driver has closed the connection."""
        Thread(target=self._read, daemon=True).start()

    def receive(self) -> dict[str, Any]:
        """Return the next order of the driver; empty after it has closed the connection."""
        return self._orders.get()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._orders.put(json.loads(line))
        self._orders.put({})
        self.gone.set()

    def send(self, **message: Any) -> None:
        """Send a message; it is dropped if the driver has exited."""
        with self._lock, suppress(OSError):
            self._out.write(json.dumps(message) + "\n")
            self._out.flush()

    def fail(self, error: Exception) -> None:
        """Report why the host exits: an error of sbench, or any exception of its library."""
        if isinstance(error, SbenchError):
            self.send(problem=str(error), hint=error.hint)
        else:
            self.send(problem=describe_error(error), hint="")


def describe_error(error: BaseException) -> str:
    """Return an error in a short line, with its type."""
    return one_line(f"{type(error).__name__}: {error}")[:_LONGEST]


def pickled_texts(data: bytes) -> list[str]:
    """Return the texts in a pickle, in their order, without loading it."""
    texts = []
    # pickletools may raise any exception for invalid data.
    with suppress(Exception):
        for _, argument, _ in pickletools.genops(data):
            if isinstance(argument, str):
                texts.append(argument)
    return texts


def pickled_error(data: bytes) -> str:
    """Return type and message of a pickled exception, without loading it."""
    texts = [text for text in pickled_texts(data) if text not in _PLUMBING]
    # The name of a class follows its module, except for builtins.
    number = 3 if texts and "." in texts[0] else 2
    return one_line(": ".join(texts[:number])) or "no reason given"
