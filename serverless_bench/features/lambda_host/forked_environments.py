"""The process from which the execution environments of a function's code are forked.

It runs as a script, because the function's code has to be on ``sys.path``. It imports only
``base.fork_server`` from this package, and removes it again before it imports the function's
code, which may contain a different version of this package.

``awslambdaric``'s native client takes the address of the Runtime API when it is
imported, so it is imported after the fork.
"""

import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time  # noqa: TID251 - sets the time zone, reads no clock
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_INSTALLATION: Final = str(Path(__file__).parents[3])
sys.path.insert(0, _INSTALLATION)
from serverless_bench.base.fork_server import ForkServer  # noqa: E402

sys.path.remove(_INSTALLATION)
for _name in [name for name in sys.modules if name.partition(".")[0] == "serverless_bench"]:
    del sys.modules[_name]

_HARMLESS: Final = (
    "awslambdaric.lambda_context",
    "awslambdaric.lambda_literals",
    "awslambdaric.lambda_runtime_exception",
    "awslambdaric.lambda_runtime_log_utils",
    "awslambdaric.lambda_runtime_marshaller",
    "http.client",
)
"""Modules that all environments import and that do not read environment variables."""


def main(control: str, settings_json: str, handler: str = "") -> None:
    """Serve the host until its end of the control socket is closed.

    Parameters
    ----------
    control
        Descriptor of the socket to the host; with ``fresh`` this process becomes an
        execution environment itself, in an interpreter without preloaded modules.
    settings_json
        JSON: ``paths`` are put first on ``sys.path``, ``last`` last, ``preload`` are
        modules, ``rehearse`` are calls, and ``scratch`` is the host's directory, which
        is removed if the host dies.
    handler
        Handler of a fresh environment.
    """
    settings = json.loads(settings_json)
    if settings["paths"]:
        # Otherwise the directory of this file would precede the directories of the function.
        directory_of_script = str(Path(__file__).parent)
        sys.path[:] = [
            *settings["paths"],
            *(path for path in sys.path if path != directory_of_script),
        ]
    sys.path += settings["last"]
    if control == "fresh":
        _run(handler)
        return
    server = ForkServer(int(control), _become, ended=_remove_cgroups)
    _prepare(settings)
    if not server.serve():
        shutil.rmtree(settings["scratch"], ignore_errors=True)


def _remove_cgroups(order: dict[str, Any]) -> None:
    for directory in order["cgroups"]:
        with suppress(OSError):
            Path(directory).rmdir()


def _prepare(settings: dict[str, Any]) -> None:
    """Import modules and make calls once, which all environments would otherwise repeat."""
    modules = (*_HARMLESS, *settings["preload"])
    imports = [{"call": "importlib:import_module", "arguments": [name]} for name in modules]
    for call in (*imports, *settings["rehearse"]):
        module, _, function = call["call"].partition(":")
        try:
            getattr(importlib.import_module(module), function)(*call["arguments"])
        except Exception:  # noqa: BLE001 - the invocation reports the error
            traceback.print_exc()


def _become(order: dict[str, Any], _: int | None) -> None:
    """Become the execution environment that the host orders."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    for directory in order["cgroups"]:
        (Path(directory) / "cgroup.procs").write_text("0")
    if order["data_bytes"]:
        resource.setrlimit(resource.RLIMIT_DATA, (order["data_bytes"],) * 2)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.chdir(order["directory"])
    if order["command"]:
        os.execve(order["command"][0], order["command"], order["environment"])  # noqa: S606
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    _run(order["handler"])


def _run(handler: str) -> None:
    from awslambdaric.__main__ import main as runtime

    runtime(["awslambdaric", handler])


if __name__ == "__main__":
    main(*sys.argv[1:])
