"""Lithops with functions in the cloud.

Lithops only launches functions and reports rejected events. Records are written to the store and
found there, because Lithops waits forever for calls that it has lost (README.md). Written
for version 3.8.
"""

import ast
import json
import logging
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, NoReturn

from botocore import exceptions as boto

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import ExecutorError, UsageError, one_line
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.environment import first_set
from serverless_bench.features.custom.user_function import ALLOW_CODE
from serverless_bench.features.remote.delivery import answer_delivery
from serverless_bench.features.remote.host_process import Driver, pickled_error, pickled_texts

_SECRET: Final = re.compile(
    r"^[^=]*(access_key|account_key|api_?key|connection_string|password|private_key|secret"
    r"|session_token|(?<![^_])sas(?![^_=]))"
    # A URL with a password.
    r"|://[^/\s]*:[^/\s]*@"
)
"""Matches a setting and the value, written as ``name=value``."""
_EVENT_AGE_S: Final = (60, 21600)
"""Limits of MaximumEventAgeInSeconds (Lambda developer guide)."""
_SETTLE_S: Final = 5.0
_LOOK_S: Final = 0.5
"""Interval of checks for completed calls."""
_NEEDED: Final = ("serverless_bench", "botocore", "cryptography")
"""Packages that a function imports first; see features/aws/stack/recipe/function.txt."""


def refuse_keys(config: Mapping[str, Any]) -> None:
    """Reject a configuration with credentials, unless the user allows sending them.

    Lithops puts the full configuration into the payload of every call.

    Raises
    ------
    UsageError
        If it contains credentials; the error names the setting but not the value.
    """
    for path, value in _leaves(config):
        if value and _SECRET.search(f"{path.rpartition('.')[2]}={value}"):
            raise UsageError(
                f"the Lithops configuration holds a key: {path}",
                hint="Lithops sends it with every call: on AWS remove it, for AWS_PROFILE here and"
                " the execution role there; where Lithops needs it, `lithops_keys` lets it go",
            )


def _leaves(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        where = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping):
            yield from _leaves(value, where)
        else:
            yield where, value


def check_runtime(executor: Any) -> None:
    """Reject a runtime that cannot run any call.

    Lithops queries the importable packages of each runtime once, before its first map, and caches
    them. So this check causes no additional calls.

    Raises
    ------
    ExecutorError
        If packages are missing there.
    """
    # Imported late, as in `lithops_host`: its constants read TMPDIR at import.
    from lithops.version import __version__ as version

    invoker, handler = executor.invoker, executor.compute_handler
    info, storage = invoker.runtime_info, executor.internal_storage
    name, memory, timeout_s = invoker.runtime_name, info["runtime_memory"], info["runtime_timeout"]
    key = handler.get_runtime_key(name, memory, version)
    is_cached = storage.get_runtime_meta(key) is not None
    missing = _missing(invoker.select_runtime("check", None))
    if missing and is_cached:
        # The cached list may be older than the current image.
        answer = handler.deploy_runtime(name, memory, timeout_s)
        storage.put_runtime_meta(key, {**answer, "runtime_timeout": timeout_s})
        missing = _missing(answer)
    if missing:
        raise ExecutorError(
            f"its runtime {name!r} cannot import {', '.join(missing)}",
            hint='install serverless-bench where functions run; see "Lithops" in the documentation',
        )


def _missing(answer: Mapping[str, Any]) -> list[str]:
    return [name for name in _NEEDED if name not in dict(answer["preinstalls"])]


def launch_all(
    executor: Any,
    message: dict[str, Any],
    order: Mapping[str, Any],
    driver: Driver,
) -> None:
    """Launch batches until the driver sends no more, and delete the objects of Lithops.

    Parameters
    ----------
    executor
        Lithops' ``FunctionExecutor``.
    message
        The first batch.
    order
        The first message of the driver.
    driver
        Sends further batches, and receives reports.
    """
    # A rejected call raises in a thread of Lithops, which only logs it, with a traceback. The
    # driver notices it by a timeout.
    logging.getLogger("concurrent.futures").setLevel(logging.CRITICAL)
    backend = executor.compute_handler.backend
    if endpoint := first_set(("AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL")):
        _redirect(backend, endpoint)
    timeout_s = order["timeout_s"]
    futures: list[Any] = []
    calls: SimpleQueue[tuple[Mapping[str, Any], Any]] = SimpleQueue()
    _forget_deleted_function(executor)
    check_runtime(executor)
    threading.Thread(target=_tell_refusals, args=(calls, driver), daemon=True).start()
    try:
        while message:
            batch = message["launch"]
            new_futures = executor.map(
                answer_delivery,
                [{"event": event, "remaining_s": timeout_s} for event in batch],
                timeout=timeout_s,
                # Running code that comes with a call is Lithops' purpose.
                extra_env={ALLOW_CODE: "1"},
                include_modules=None,
            )
            if not futures:
                _disable_retries(executor, order["event_age_s"])
            futures += new_futures
            for call in zip(batch, new_futures, strict=True):
                calls.put(call)
            driver.send(launched=len(batch))
            message = driver.receive()
    finally:
        _delete_all(executor, futures)


def has_ended(future: Any) -> bool:
    """Return whether Lithops has the result of a call."""
    return bool(future.ready or future.success or future.done)


def _tell_refusals(calls: "SimpleQueue[tuple[Mapping[str, Any], Any]]", driver: Driver) -> NoReturn:
    """Report events that were not run to the driver, until this process exits."""
    while True:
        for _ in range(calls.qsize()):
            event, future = calls.get()
            if not has_ended(future):
                calls.put((event, future))
            elif refusal := _refusal(future):
                driver.send(refused={"index": event["index"], "launch": event["launch"], **refusal})
        sleep(_LOOK_S)


def _refusal(future: Any) -> dict[str, Any] | None:
    """Return the reason why a function did not run its event; None if it did.

    Lithops would unpickle the result or exception of the function. Its monitor has both as the
    ``repr`` of a pickle, which is parsed here without loading it.
    """
    status = future._call_status or {}  # noqa: SLF001 - no other way to it
    # The store is untrusted input: anybody may have written to it.
    with suppress(Exception):
        if status.get("exception"):
            error = pickled_error(ast.literal_eval(status["exc_info"]))
            return {"cause": f"its call by Lithops failed: {error}"}
        (text,) = pickled_texts(ast.literal_eval(status["result"]))
        answer = json.loads(text)
        if "refused" in answer:
            permanent = answer.get("permanent") is True
            return {"cause": one_line(answer["refused"]), "permanent": permanent}
    return None


def _redirect(backend: Any, endpoint: str) -> None:
    """Send invocations to the configured endpoint, like other AWS clients.

    Lithops' request goes to a hard-coded host name.
    """
    host, session = getattr(backend, "host", None), getattr(backend, "session", None)
    if host is None or session is None:
        return
    send = session.send

    def redirected(request: Any) -> Any:
        request.url = request.url.replace(f"https://{host}", endpoint)
        return send(request)

    session.send = redirected


def _runtime(executor: Any) -> tuple[str, int]:
    """Return name and memory of the runtime that Lithops is going to use."""
    settings = executor.config[executor.config["lithops"]["backend"]]
    backend = executor.compute_handler.backend
    name = settings.get("runtime") or backend._get_default_runtime_name()  # noqa: SLF001
    return name, settings["runtime_memory"]


def _forget_deleted_function(executor: Any) -> None:
    """Make Lithops deploy its function again if it was deleted.

    It caches the deployment permanently, in its bucket and in the user's home, and without the
    function every call fails with status 404, which it only logs.
    """
    backend = executor.compute_handler.backend
    with suppress(AttributeError, KeyError, boto.BotoCoreError):
        runtime = _runtime(executor)
        name = backend._format_function_name(*runtime)  # noqa: SLF001 - no other way to it
        try:
            backend.lambda_client.get_function_configuration(FunctionName=name)
        except boto.ClientError as exc:
            if exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
                executor.internal_storage.delete_runtime_meta(backend.get_runtime_key(*runtime))


def _disable_retries(executor: Any, age_s: int) -> None:
    """Tell Lambda to deliver each event once and in time; by default it tries three times.

    With a backend other than Lambda, or without permission, the only consequence are duplicates,
    which are detected.
    """
    backend = executor.compute_handler.backend
    with suppress(AttributeError, KeyError, boto.BotoCoreError, boto.ClientError):
        name = backend._format_function_name(*_runtime(executor))  # noqa: SLF001 - as above
        low, high = _EVENT_AGE_S
        backend.lambda_client.put_function_event_invoke_config(
            FunctionName=name,
            MaximumRetryAttempts=0,
            MaximumEventAgeInSeconds=min(max(age_s, low), high),
        )


def _delete_all(executor: Any, futures: list[Any]) -> None:
    """Delete the objects of Lithops for this job, and its resources of completed batches.

    Lithops' workers write a state after the record, so this waits for a short time; Lithops'
    cleaner would be a process that outlives the host. A batch with an unfinished call is kept
    completely: on Kubernetes deleting it would kill its functions, and a queued call has yet to
    load its code and arguments.
    """
    until_ns = monotonic_ns() + round(_SETTLE_S * NS_PER_S)
    while monotonic_ns() < until_ns and not all(map(has_ended, futures)):
        sleep(0.1)
    running = {future.job_key for future in futures if not has_ended(future)}
    ended = {future.job_key for future in futures} - running
    bucket, backend = executor.internal_storage.bucket, executor.internal_storage.storage
    keys = backend.list_keys(bucket, f"lithops.jobs/{executor.executor_id}")
    if running:
        keys = [key for key in keys if key.split("/")[1] in ended]
    if keys:
        backend.delete_objects(bucket, keys)
    # Without a name, Lithops would delete all of them.
    if ended:
        executor.compute_handler.clear(sorted(ended))
