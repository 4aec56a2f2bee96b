"""What Lithops needs when its functions are not on this machine.

It launches, and passes on why an event was not run: records go to the store and are found there,
because Lithops waits without end for calls that it has lost (docs/executors.md). Written for 3.8.
"""

import ast
import json
import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, NoReturn

from botocore import exceptions as boto

from serverless_bench.clock import monotonic_ns, sleep
from serverless_bench.errors import ExecutorError, UsageError, one_line
from serverless_bench.executors.remote.host_process import Driver, pickled_error, pickled_texts
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.delivery import answer_delivery
from serverless_bench.worker.user_function import ALLOW_CODE

MAX_TIMEOUT_S: Final = 900
"""AWS Lambda's, and the longest that Lithops' backends agree on."""
_SECRET: Final = re.compile(
    r"^[^=]*(access_key|account_key|api_?key|connection_string|password|private_key|secret"
    r"|session_token|(?<![^_])sas(?![^_=]))"
    # A URL that holds a password.
    r"|://[^/\s]*:[^/\s]*@"
)
"""Of a setting and its value, as in ``name=value``."""
_EVENT_AGE_S: Final = (60, 21600)
"""What AWS takes for MaximumEventAgeInSeconds (Lambda developer guide)."""
_SETTLE_S: Final = 5.0
_LOOK_S: Final = 0.5
"""Between two looks for calls that have ended."""
_NEEDED: Final = ("serverless_bench", "botocore", "cryptography")
"""What a function imports before it does anything; see aws/stack/recipe/function.txt."""


def refuse_keys(config: Mapping[str, Any]) -> None:
    """Refuse a configuration that holds credentials, unless the user wants them sent.

    Lithops puts the whole configuration into the payload of every call.

    Raises
    ------
    UsageError
        If there are any; it names where, and not what.
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


def check_runtime(executor: Any) -> None:  # noqa: ANN401 - Lithops is untyped
    """Refuse a runtime in which no call could even begin.

    Lithops asks each runtime once what it can import, before its first map, and keeps the
    answer. So this costs no call that it would not have made.

    Raises
    ------
    ExecutorError
        If packages are missing there.
    """
    # As in `lithops_host`: its constants read TMPDIR when they are imported.
    from lithops.version import __version__ as version  # noqa: PLC0415

    invoker, handler = executor.invoker, executor.compute_handler
    info, storage = invoker.runtime_info, executor.internal_storage
    name, memory, timeout_s = invoker.runtime_name, info["runtime_memory"], info["runtime_timeout"]
    key = handler.get_runtime_key(name, memory, version)
    kept = storage.get_runtime_meta(key) is not None
    missing = _missing(invoker.select_runtime("check", None))
    if missing and kept:
        # The answer may be of an image that has been built anew since.
        answer = handler.deploy_runtime(name, memory, timeout_s)
        storage.put_runtime_meta(key, {**answer, "runtime_timeout": timeout_s})
        missing = _missing(answer)
    if missing:
        raise ExecutorError(
            f"its runtime {name!r} cannot import {', '.join(missing)}",
            hint="install serverless-bench where functions run; docs/executors.md has a recipe",
        )


def _missing(answer: Mapping[str, Any]) -> list[str]:
    importable = {name for name, _ in answer["preinstalls"]}
    return [name for name in _NEEDED if name not in importable]


def launch_all(
    executor: Any,  # noqa: ANN401 - Lithops is untyped
    message: dict[str, Any],
    order: Mapping[str, Any],
    driver: Driver,
) -> None:
    """Launch batches until the driver wants no more, and delete what Lithops stored.

    Parameters
    ----------
    executor
        Lithops' ``FunctionExecutor``.
    message
        The first batch.
    order
        The driver's first message.
    driver
        Sends the others, and is told what comes of them.
    """
    # A call that is refused raises in a thread of Lithops' own, which only its
    # log shows, with a traceback. What it was for is found by its silence.
    logging.getLogger("concurrent.futures").setLevel(logging.CRITICAL)
    backend = executor.compute_handler.backend
    endpoint = os.environ.get("AWS_ENDPOINT_URL_LAMBDA") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        _redirect(backend, endpoint)
    timeout_s = min(order["timeout_s"], MAX_TIMEOUT_S)
    futures: list[Any] = []
    calls: SimpleQueue[tuple[Mapping[str, Any], Any]] = SimpleQueue()
    _forget_deleted_function(executor)
    check_runtime(executor)
    threading.Thread(target=_tell_refusals, args=(calls, driver), daemon=True).start()
    try:
        while message:
            batch = message["launch"]
            made = executor.map(
                answer_delivery,
                [{"event": event, "remaining_s": timeout_s} for event in batch],
                timeout=timeout_s,
                # It is what Lithops does: run code that comes with a call.
                extra_env={ALLOW_CODE: "1"},
                include_modules=None,
            )
            if not futures:
                _disable_retries(executor, order["event_age_s"])
            futures += made
            for call in zip(batch, made, strict=True):
                calls.put(call)
            driver.send(launched=len(batch))
            message = driver.receive()
    finally:
        _delete_all(executor, futures)


def has_ended(future: Any) -> bool:  # noqa: ANN401 - Lithops is untyped
    """Tell whether Lithops knows what a call came to."""
    return bool(future.ready or future.success or future.done)


def _tell_refusals(calls: "SimpleQueue[tuple[Mapping[str, Any], Any]]", driver: Driver) -> NoReturn:
    """Tell the driver, as long as this process lives, which events were not run, and why."""
    while True:
        for _ in range(calls.qsize()):
            event, future = calls.get()
            if not has_ended(future):
                calls.put((event, future))
            elif said := _refusal(future):
                driver.send(refused={"index": event["index"], "launch": event["launch"], **said})
        sleep(_LOOK_S)


def _refusal(future: Any) -> dict[str, Any] | None:  # noqa: ANN401 - Lithops is untyped
    """Return why a function did not run its event; None if it did.

    Lithops would load what the function returned or raised. Its monitor has both as ``repr`` shows
    a pickle, which is read here and not loaded.
    """
    status = future._call_status or {}  # noqa: SLF001 - no other way to it
    # In the store stands what anybody may have written there.
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


def _redirect(backend: Any, endpoint: str) -> None:  # noqa: ANN401 - Lithops is untyped
    """Send invocations where every other AWS client sends them.

    Lithops' own request goes to a host name in its source and knows no endpoint.
    """
    host, session = getattr(backend, "host", None), getattr(backend, "session", None)
    if host is None or session is None:
        return
    send = session.send

    def redirected(request: Any) -> Any:  # noqa: ANN401 - botocore's own
        request.url = request.url.replace(f"https://{host}", endpoint)
        return send(request)

    session.send = redirected


def _runtime(executor: Any) -> tuple[str, int]:  # noqa: ANN401 - Lithops is untyped
    """Return name and memory of the runtime that Lithops is going to use."""
    settings = executor.config[executor.config["lithops"]["backend"]]
    backend = executor.compute_handler.backend
    name = settings.get("runtime") or backend._get_default_runtime_name()  # noqa: SLF001
    return name, settings["runtime_memory"]


def _forget_deleted_function(executor: Any) -> None:  # noqa: ANN401 - Lithops is untyped
    """Make Lithops deploy its function again if it was deleted.

    It remembers for ever, in its bucket and in the user's home, that it has deployed one,
    and then every call is answered 404, which it logs.
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


def _disable_retries(executor: Any, age_s: int) -> None:  # noqa: ANN401 - Lithops is untyped
    """Tell Lambda to deliver each event once and not late; by default it tries three times.

    A backend that is not Lambda, or a role that may not do this, costs duplicates, which
    are found, and nothing else.
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


def _delete_all(executor: Any, futures: list[Any]) -> None:  # noqa: ANN401 - Lithops is untyped
    """Delete what Lithops stored for this job, and keeps of it on its backend, where all is over.

    Its workers write a state after ours have written the record, so it waits a little for
    those; its own cleaner would be a process that outlives us. Of a batch with a call that has
    not ended, everything stays: on Kubernetes its functions would end with it, and one that is
    queued has yet to load its code and its arguments.
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
    # Without a name, Lithops would take all of them.
    if ended:
        executor.compute_handler.clear(sorted(ended))
