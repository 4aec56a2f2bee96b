"""Pickle a function of the user and send it to workers: the driver's side."""

import io
import os
import sys
import sysconfig
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

from serverless_bench.base.errors import CLOUD_SECRETS, UsageError
from serverless_bench.base.plugins import extra
from serverless_bench.features.custom.context import FunctionContext
from serverless_bench.features.custom.load import FunctionLoad
from serverless_bench.features.custom.user_function import PYTHON
from serverless_bench.job.workload import Load, fitted

MAX_CODE_BYTES: Final = 720_000
"""Base64 makes 960,000 bytes of it. An asynchronous event has 1 MB at most (AWS Lambda developer
guide, "Lambda quotas"; lambda-host has the same limit).
"""
_LEAST_SECRET: Final = 8
"""Shortest secret to search for, in characters: secrets of AWS have 40, and MinIO requires 8.
A shorter word such as ``test`` of LocalStack protects no data and is a part of many names.
"""
_HOLDERS: Final = frozenset({"aiobotocore", "boto3", "botocore"})
"""Packages with objects that hold credentials or give access to them."""

OwnFunction = Callable[[FunctionContext], object]
"""A function of the user; its return value is ignored."""


def pack(function: OwnFunction) -> str:
    """Return a function pickled by value, together with modules from its folder.

    Parameters
    ----------
    function
        From a notebook, a script or a module. Modules in the folder of its file are included
        if it uses them; all other modules have to be installed on the workers.

    Returns
    -------
    str
        The Python version, a colon, and cloudpickle's bytes in Base64.

    Raises
    ------
    UsageError
        If it is not a function, cannot be pickled, holds credentials or is too large.
    PluginError
        If cloudpickle is not installed.
    """
    if not callable(function):
        raise UsageError(f"{function!r} is not a function")
    with extra("custom", "a function of your own"):
        import cloudpickle
    with _by_value(cloudpickle, function):
        try:
            data = _dumped(cloudpickle, function)
        except UsageError:
            raise
        except Exception as exc:
            why = " ".join(str(exc).split())
            raise UsageError(
                f"{name_of(function)} cannot be sent: {type(exc).__name__}: {why}",
                hint="make clients, sessions, locks and open files inside the function",
            ) from exc
    if len(data) > MAX_CODE_BYTES:
        raise UsageError(
            f"{name_of(function)} has {len(data)} bytes with all that it holds, and"
            f" {MAX_CODE_BYTES} fit into an event",
            hint="store large values in objects and pass their keys",
        )
    return f"{PYTHON}:{b64encode(data).decode()}"


def load_of(function: OwnFunction, load: Load) -> Load:
    """Return a load with a function in it.

    Raises
    ------
    UsageError, PluginError
        If ``pack`` fails, or the load is that of another workload.
    """
    return replace(FunctionLoad.narrow(fitted(load, FunctionLoad)), code=pack(function))


def name_of(function: object) -> str:
    """Return the name of a function."""
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


@contextmanager
def _by_value(cloudpickle: ModuleType, function: object) -> Iterator[None]:
    """Pickle the user's modules by value, because workers do not have them."""
    modules = [module for module in _sibling_modules(function) if module.__name__ != "__main__"]
    with ExitStack() as registered:
        for module in modules:
            if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                registered.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


def _sibling_modules(function: object) -> list[ModuleType]:
    """Return the module of a function, and modules in and below its folder if not installed."""
    module = sys.modules.get(getattr(function, "__module__", None) or type(function).__module__)
    if module is None:
        return []
    file = _file_of(module)
    folder = Path(file).parent if file else Path.cwd()
    if _is_installed(folder):
        return []
    # A process has thousands of modules, so the cheap test of the path comes first.
    start = f"{folder}{os.sep}"
    modules_in_folder = [
        m for m in list(sys.modules.values()) if str(_file_of(m)).startswith(start)
    ]
    return [module, *(m for m in modules_in_folder if m is not module and _is_users(m))]


def _file_of(module: ModuleType) -> str | None:
    return getattr(module, "__file__", None)


def _is_users(module: ModuleType) -> bool:
    ours = module.__name__.partition(".")[0] == "serverless_bench"
    return not ours and not _is_installed(Path(_file_of(module) or ""))


def _is_installed(path: Path) -> bool:
    places = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
    return any(path.is_relative_to(place) for place in places)


def _dumped(cloudpickle: ModuleType, function: object) -> bytes:
    class Careful(cloudpickle.Pickler):  # type: ignore[misc,name-defined]
        def reducer_override(self, held: object) -> object:
            if type(held).__module__.partition(".")[0] in _HOLDERS:
                _refuse(name_of(function))
            return super().reducer_override(held)

    room = io.BytesIO()
    Careful(room).dump(function)
    data = room.getvalue()
    secrets = [
        os.environ.get(variable, "").encode()
        for variable in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", *CLOUD_SECRETS)
    ]
    if any(len(secret) >= _LEAST_SECRET and secret in data for secret in secrets):
        _refuse(name_of(function))
    return data


def _refuse(name: str) -> NoReturn:
    raise UsageError(
        f"{name} holds credentials, or a session that has some",
        hint="make the client inside the function: a worker has credentials of its own",
    )
