"""The process that runs Lithops for the ``lithops`` executor.

Driver and host exchange JSON lines, and the host exits when its standard input is closed::

    driver:  {"concurrency": 8, "timeout_s": 905, "event_age_s": 60, "keys": false}
    host:    {"backend": "localhost"}
    driver:  {"invocations": [...]}        functions on this machine
    host:    {"started": 3}, and one {"index": ..., "record": ...} or "lost" for each
    driver:  {"launch": [...]}             in the cloud, repeated for each batch
    host:    {"launched": 100}             records are written to the store
    host:    {"refused": {"index": 3, ...}}    when an event was not run

Lithops hides three facts that a benchmark needs (README.md): rejected calls are logged and
then awaited forever, its timeout starts only after a call has reported that it runs, and results of
failed calls are dropped. Therefore this module never waits for Lithops: it polls for results ten
times a second.
"""

import os
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, Final

from serverless_bench.base.clock import sleep, wall_ns
from serverless_bench.features.custom.user_function import ALLOW_CODE
from serverless_bench.features.lithops.cloud import (
    check_runtime,
    has_ended,
    launch_all,
    refuse_keys,
)
from serverless_bench.features.lithops.options import FUNCTIONS, LONGEST_S
from serverless_bench.features.remote.delivery import handle_here
from serverless_bench.features.remote.host_process import Driver

_POLL_S: Final = 0.1


def main() -> None:
    """Run a job."""
    driver = Driver()
    try:
        order = driver.receive()
        # Job files, logs and local storage are deleted with the job; jobs never share them.
        with TemporaryDirectory(prefix="sbench-lithops-", ignore_cleanup_errors=True) as scratch:
            os.environ["TMPDIR"] = tempfile.tempdir = scratch
            _run(driver, order)
    except Exception as exc:  # noqa: BLE001 - whatever Lithops raises is the answer
        driver.fail(exc)
    # Lithops' exit hooks would start processes again.
    os._exit(0)


def _run(driver: Driver, order: dict[str, Any]) -> None:
    # Imported late, because its constants read TMPDIR at import.
    import lithops
    from lithops.config import load_config

    config, options = _configured(load_config(log=False), order)
    backend = config["lithops"]["backend"]
    if backend != "localhost" and not order["keys"]:
        refuse_keys(config)
    driver.send(backend=backend)
    # The driver may take time before its next message, or needs only the backend.
    message = driver.receive()
    if not message:
        return
    executor = lithops.FunctionExecutor(config=config, log_level=None, **options)
    if "launch" in message:
        launch_all(executor, message, order, driver)
        return
    try:
        _follow(driver, executor, message["invocations"], order["timeout_s"])
    finally:
        # Kill running calls on this machine.
        executor.compute_handler.clear()


def _follow(
    driver: Driver,
    executor: Any,
    invocations: list[dict[str, Any]],
    timeout_s: int,
) -> None:
    check_runtime(executor)
    submitted_ns = wall_ns()
    futures = executor.map(
        handle_here,
        [{"event": spec} for spec in invocations],
        timeout=timeout_s,
        extra_env={ALLOW_CODE: "1"},
        # The package is installed where functions run; otherwise Lithops would ship the source with
        # every job.
        include_modules=None,
    )
    waiting = dict(zip((spec["index"] for spec in invocations), futures, strict=True))
    started = 0
    while waiting and not driver.gone.is_set():
        now = sum(not (f.new or f.invoked) for f in futures)
        if now > started:
            started = now
            driver.send(started=started)
        for index in [i for i, f in waiting.items() if has_ended(f)]:
            outcome = _outcome(index, waiting.pop(index), executor.internal_storage)
            driver.send(submitted_ns=submitted_ns, **outcome)
        sleep(_POLL_S)


def _configured(
    config: dict[str, Any], order: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the user's Lithops configuration with its backend and explicit limits."""
    # As above. Lithops fills in a backend that the user has not named.
    from lithops.config import _resolve_mode_and_backend

    settings = dict(config.get("lithops") or {})
    # Lithops' cleaner would outlive this process as a detached process.
    settings["data_cleaner"] = False
    config["lithops"] = settings
    backend, mode = _resolve_mode_and_backend(config)
    concurrency, wanted_s = order["concurrency"], order["timeout_s"]
    timeout_s = order["timeout_s"] = min(wanted_s, LONGEST_S.get(backend, wanted_s))
    section = config.get(backend) or {}
    if backend == "localhost":
        settings.setdefault("monitoring_interval", _POLL_S)
        settings["execution_timeout"] = timeout_s
        # Version 2 starts an interpreter per call; "python" on PATH may be another interpreter.
        return config, {
            "version": 1,
            "runtime": section.get("runtime") or sys.executable,
            "worker_processes": concurrency,
        }
    options = {"runtime_timeout": timeout_s}
    if backend in FUNCTIONS:
        return config, {**options, "max_workers": concurrency, "worker_processes": 1}
    # There a worker is an instance or a pod, and the user has limited their cost.
    most = section.get("max_workers")
    if most is None:
        # The module needs the library of a cloud; Lithops reports a missing one.
        with suppress(ImportError):
            module = import_module(f"lithops.{mode}.backends.{backend}.config")
            most = getattr(module, "DEFAULT_CONFIG_KEYS", {}).get("max_workers")
    return config, {**options, "max_workers": min(int(most or concurrency), concurrency)}


def _outcome(index: int, future: Any, storage: Any) -> dict[str, Any]:
    try:
        record = future.result(internal_storage=storage)
    except Exception as exc:  # noqa: BLE001 - the function's own exception
        return {"index": index, "lost": f"{type(exc).__name__}: {exc}"}
    if record is None:
        return {"index": index, "lost": "Lithops returned no result"}
    return {"index": index, "record": record}


if __name__ == "__main__":
    main()
