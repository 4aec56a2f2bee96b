"""Run a user function: the worker's side.

It arrives inside the invocation, pickled by cloudpickle, and loading it runs code. A worker does
that only with permission: executors that fork or start their workers grant it, and a deployed
function has it if deployed with ``AllowCode``.
"""

import os
import sys
import traceback
from base64 import b64decode
from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import PurePath
from typing import Any, Final

from serverless_bench.base.errors import DeadlineExceeded
from serverless_bench.features.custom.context import FunctionContext
from serverless_bench.features.custom.workload import ALLOW_CODE as ALLOW_CODE
from serverless_bench.worker.operation import plain
from serverless_bench.worker.runner import InvocationRunner

PYTHON: Final = f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
"""Python version that made or has to run bytecode; it precedes the code, with a colon."""
_MAX_TEXT: Final = 200


class _RefusedError(Exception):
    """A worker does not run the code; the message has the reason."""


def run_function(runner: InvocationRunner) -> str | None:
    """Call the function of an invocation, and return why it ended early, if it did.

    It is called once, or repeatedly for the job's duration; warm-up calls come first, then the
    start barrier, if any.
    """
    invocation = runner.invocation
    try:
        function = unpack(invocation.load.code)
    except _RefusedError as exc:
        return f"refused: {exc}"
    except Exception as exc:  # noqa: BLE001 - user code may raise anything
        return explain(exc)
    for turn in count():
        warmup = turn < invocation.warm_up
        if turn == invocation.warm_up:
            runner.begin()
        context = FunctionContext(runner, warmup=warmup)
        try:
            function(context)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - a failure is a measurement too
            return explain(exc)
        finally:
            context.finish()
        if not warmup and (invocation.duration is None or runner.is_over):
            return None
    return None


def unpack(code: str | None) -> Callable[[FunctionContext], object]:
    """Return the function that ``features.custom.pickling.pack`` converted to ``code``.

    Raises
    ------
    _RefusedError
        If this worker does not run code, or not this code.
    """
    if not code:
        raise _RefusedError("the invocation has no function")
    if os.environ.get(ALLOW_CODE) != "1":
        raise _RefusedError(
            "this worker does not run code from invocations; deploy it with AllowCode=true,"
            " or start it with --allow-code"
        )
    python, _, text = code.partition(":")
    if python != PYTHON:
        raise _RefusedError(f"the function was pickled by {python}, but this worker has {PYTHON}")
    try:
        # Import by name: imports of this module must not load it.
        cloudpickle: Any = import_module("cloudpickle")
    except ModuleNotFoundError:
        raise _RefusedError("this worker has no cloudpickle") from None
    # Unpickling runs code, which is intended here: it comes from the driver that made it, with the
    # invocation, and is never stored in a file.
    function: Callable[[FunctionContext], object] = cloudpickle.loads(b64decode(text))
    return function


def explain(exc: BaseException) -> str:
    """Return a line about the exception raised by the user's function, with its location."""
    if isinstance(exc, DeadlineExceeded):
        return "deadline: stopped before the function had finished"
    text = " ".join(plain(f"{type(exc).__name__}: {exc}").split())
    if len(text) > _MAX_TEXT:
        text = text[: _MAX_TEXT - 3] + "..."
    place = _place(exc)
    return f"function: {text}" + (f" ({place})" if place else "")


def _place(exc: BaseException) -> str:
    """Return the innermost line of user code: the last frame in the first file after this one."""
    frames = traceback.extract_tb(exc.__traceback__)
    user_index = next((n for n, f in enumerate(frames) if f.filename != __file__), None)
    if user_index is None:
        return ""
    users = [frame for frame in frames if frame.filename == frames[user_index].filename]
    file, line = PurePath(users[-1].filename), users[-1].lineno
    # A notebook cell has a number as its file name, which its user never sees.
    return f"line {line} of its cell" if "ipykernel_" in file.parent.name else f"{file.name}:{line}"
