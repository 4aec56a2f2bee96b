"""The process that the execution environments of one function's code are forked from.

It runs as a script, because the function's own code is what has to be on ``sys.path``:
of this package it takes ``process.fork_server`` alone, and forgets it before the
function's code is imported, which may hold this package in another version.

``awslambdaric``'s native client reads the address of the Runtime API when it is
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
from serverless_bench.process.fork_server import ForkServer  # noqa: E402

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
"""What every environment imports and what does not look at its environment variables."""


def main(control: str, settings_json: str, handler: str = "") -> None:
    """Serve the host until its end of the control socket closes.

    Parameters
    ----------
    control
        Descriptor of the socket to the host; with ``fresh`` this process becomes an
        execution environment itself, in an interpreter that has nothing preloaded.
    settings_json
        JSON: ``paths`` come first on ``sys.path``, ``last`` last, ``preload`` are
        modules, ``rehearse`` are calls, and ``scratch`` is the host's directory, which
        goes with a host that died.
    handler
        Of a fresh environment.
    """
    settings = json.loads(settings_json)
    if settings["paths"]:
        # The directory of this very file is first otherwise, and not the function's.
        own = str(Path(__file__).parent)
        sys.path[:] = [*settings["paths"], *(path for path in sys.path if path != own)]
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
    """Import, and do once for all, what the environments would each do by themselves."""
    modules = (*_HARMLESS, *settings["preload"])
    imports = [{"call": "importlib:import_module", "arguments": [name]} for name in modules]
    for call in (*imports, *settings["rehearse"]):
        module, _, function = call["call"].partition(":")
        try:
            getattr(importlib.import_module(module), function)(*call["arguments"])
        except Exception:  # noqa: BLE001 - whoever invokes it gets the error
            traceback.print_exc()


def _become(order: dict[str, Any], _: int | None) -> None:
    """Be the execution environment that the host orders."""
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
    from awslambdaric.__main__ import main as runtime  # noqa: PLC0415 - see the module's text

    runtime(["awslambdaric", handler])


if __name__ == "__main__":
    main(*sys.argv[1:])
