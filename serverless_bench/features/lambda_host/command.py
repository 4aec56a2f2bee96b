"""The command ``sbench lambda-host``."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.base.plugins import extra
from serverless_bench.cli.flags.options import (
    DURATION,
    FOLDER,
    group,
    option,
    port_option,
)
from serverless_bench.cli.output.terminal import say, say_json, sections
from serverless_bench.features.lambda_host.settings import (
    MAX_TIMEOUT_S,
    MEMORY_MIB,
    FaultRule,
    HostSettings,
    InvokeFault,
    arn,
)

if TYPE_CHECKING:
    from serverless_bench.features.lambda_host.functions import LambdaFunction
    from serverless_bench.features.lambda_host.host import Deliver, LambdaHost

_HANDLER: Final = "serverless_bench.features.remote.handler.handler"
_REHEARSE: Final = "serverless_bench.worker.rehearsal:rehearse"
_SETTINGS: Final = (
    *("port", "region", "fresh", "preload", "share_packages", "concurrency", "burst"),
    *("launch_burst", "event_retries", "cpus", "seed"),
)
"""Flags that are passed on as settings of a host."""
_BANNER: Final = """\
lambda host at {url}
{limits}
  export {exports}
  sbench write --executor lambda --function {name} --number 50 --mb 8
logs: {logs}
statistics: {url}/sbench/status, and here after Ctrl-C"""

_FAULTS: Final = {
    InvokeFault.THROTTLE: "Respond with 429 TooManyRequestsException.",
    InvokeFault.CUT: "Accept and run an event, but reset the connection.",
    InvokeFault.DUPLICATE: "Deliver an event twice.",
    InvokeFault.LATE: "Delay an event; for a duplicate, its second delivery.",
    InvokeFault.DROP: "Accept an event and never deliver it.",
    InvokeFault.KILL: "Kill the environment as soon as it has the event.",
}


@sections(
    {
        "Server": "port region log-dir duration scripted",
        "Functions": "function code layer handler preload memory timeout fresh share-packages pass",
        "Limits": "concurrency reserved request-rate burst launch-rate launch-burst event-retries"
        " event-age retry-delay init-timeout cpu-limit cpus no-memory-limit",
        "Faults": "throttle cut duplicate late drop kill late-delay seed",
    }
)
@click.command("lambda-host", context_settings={"ignore_unknown_options": False})
@port_option
@option("--region", default="us-east-1", help="Region of the functions.")
@group(
    # Functions and their environments.
    option(
        "--function",
        multiple=True,
        default=("sbench-worker",),
        help="Name of a function; may be repeated.",
    ),
    option(
        "--code",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Directory with the function's code; by default this installation.",
    ),
    option(
        "--layer",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Directory with an unzipped layer.",
    ),
    option("--handler", default=_HANDLER, help="MODULE.FUNCTION."),
    option("--preload", multiple=True, help="Module to import before environments are forked."),
    option("--memory", type=int, default=1769, metavar="MIB", help="Memory per function."),
    option("--timeout", type=DURATION, default=900.0, help="Time limit of a function."),
    option("--fresh", is_flag=True, help="Start a new interpreter for each environment."),
    option(
        "--share-packages", is_flag=True, help="Let created functions import this installation."
    ),
    option("--pass", multiple=True, metavar="NAME", help="Variable to pass to functions."),
)
@group(
    # Limits of functions and of callers.
    option("--concurrency", type=int, default=1000, help="Concurrency of the account."),
    option("--reserved", type=int, help="Concurrency reserved for each function."),
    option("--request-rate", type=float, metavar="N", help="Invoke requests per second."),
    option("--burst", type=int, default=1000, help="Burst of requests."),
    option(
        "--launch-rate",
        type=float,
        metavar="N",
        help="New environments of each function per second; AWS: 100.",
    ),
    option("--launch-burst", type=int, default=1000, help="Burst of new environments."),
    option("--event-retries", type=int, default=0, help="Retries of a failed event."),
    option("--event-age", type=DURATION, default=60.0, help="Maximum time in the queue."),
    option(
        "--retry-delay",
        type=DURATION,
        default=1.0,
        help="Time before the first retry; doubles.",
    ),
    option(
        "--init-timeout",
        type=DURATION,
        default=60.0,
        help="Maximum time for the start of an environment.",
    ),
    option("--cpu-limit", is_flag=True, help="One CPU per 1769 MIB, as on AWS."),
    option("--cpus", type=float, help="CPUs per environment; turns --cpu-limit on."),
    option("--no-memory-limit", is_flag=True, help="Do not limit the memory of environments."),
)
@group(
    # Injected faults.
    *(
        option(f"--{kind}", metavar="RULE", help=f"{text} RULE: 0.3 or 'index=3,5 launch=0'.")
        for kind, text in _FAULTS.items()
    ),
    option("--late-delay", type=DURATION, default=3600.0, help="Delay of --late."),
    option("--seed", type=int, default=0, help="Seed of the choice of failures."),
)
@option("--scripted", is_flag=True, help="Run no processes; the host itself responds.")
@option(
    "--duration",
    type=DURATION,
    default=0.0,
    show_default=False,
    help="Duration of a --scripted call.",
)
@option(
    "--log-dir",
    type=FOLDER,
    help="Directory for the output of functions; by default a temporary one.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def command(command: tuple[str, ...], log_dir: Path | None, **flags: Any) -> int:
    """Serve AWS Lambda's Invoke API on this machine, with each function in a process.

    With a COMMAND, run it with the host's address in its environment, and exit with it.
    """
    settings = _settings(log_dir, flags)
    functions = _functions(settings, flags)
    import asyncio

    with extra("lambda-host", "sbench lambda-host"):
        from serverless_bench.features.lambda_host.server import serving
    with _credentials():
        return asyncio.run(_run(serving(settings, functions, _scripted(flags)), flags, command))


async def _run(
    serving: "AbstractAsyncContextManager[LambdaHost]",
    flags: Mapping[str, Any],
    command: Sequence[str],
) -> int:
    from serverless_bench.features.lambda_host.hosting import stop_on_signals, until_end

    stop = stop_on_signals()
    async with serving as host:
        if flags["reserved"] is not None:
            host.concurrency.reserved |= dict.fromkeys(flags["function"], flags["reserved"])
        variables = _exports(flags["region"], host.url)
        if command:
            return await until_end(command, variables, stop)
        banner = _BANNER.format(
            url=host.url,
            limits=host.shared.limits.describe(),
            exports=" ".join(f"{name}={value}" for name, value in variables.items()),
            name=flags["function"][0],
            logs=host.shared.logs,
        )
        say(*banner.splitlines())
        await stop.wait()
        say_json(json.dumps(host.statistics()))
    return 0


def _settings(logs: Path | None, flags: Mapping[str, Any]) -> HostSettings:
    if flags["memory"] not in MEMORY_MIB:
        first, last = MEMORY_MIB.start, MEMORY_MIB.stop - 1
        raise UsageError(f"--memory must be {first} to {last} MiB, got {flags['memory']}")
    if not 0 < flags["timeout"] <= MAX_TIMEOUT_S:
        raise UsageError(f"--timeout must be above 0 and at most 900 s, got {flags['timeout']:g} s")
    if flags["duration"] < 0 or (flags["reserved"] or 0) < 0:
        raise UsageError("--duration and --reserved must not be negative")
    return HostSettings(
        **{name: flags[name] for name in _SETTINGS},
        logs=None if logs is None else logs.resolve(),
        passed=flags["pass"],
        request_per_s=flags["request_rate"],
        launch_per_s=flags["launch_rate"],
        event_age_s=flags["event_age"],
        retry_delay_s=flags["retry_delay"],
        init_s=flags["init_timeout"],
        late_s=flags["late_delay"],
        limit_cpu=flags["cpu_limit"] or flags["cpus"] is not None,
        limit_memory=not flags["no_memory_limit"],
        rules={kind: _rule(kind, flags[kind]) for kind in InvokeFault if flags[kind] is not None},
    )


def _rule(kind: InvokeFault, text: str) -> FaultRule:
    try:
        return FaultRule.parse(text)
    except UsageError as exc:
        raise UsageError(f"--{kind} {text}: {exc}", hint=exc.hint) from exc


def _functions(settings: HostSettings, flags: Mapping[str, Any]) -> "list[LambdaFunction]":
    from serverless_bench.features.lambda_host.functions import LambdaFunction
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.job.target import Target
    from serverless_bench.worker.rehearsal import rehearsal

    is_worker = flags["code"] is None and flags["handler"] == _HANDLER
    if not all(flags["function"]):
        raise UsageError("--function needs a name", hint="write --function sbench-worker")
    # A typical first job, apart from its transfer.
    first = JobSpec(
        workload="write",
        number=1,
        concurrency=1,
        size=1,
        target=Target(bucket="rehearsal", endpoint_url="http://127.0.0.1:1"),
    )
    function = LambdaFunction(
        name="",
        arn="",
        handler=flags["handler"],
        code=None if flags["code"] is None else flags["code"].resolve(),
        layers=tuple(layer.resolve() for layer in flags["layer"]),
        memory_mib=flags["memory"],
        timeout_s=flags["timeout"],
        # The handler itself is not preloaded, as it records the creation time of its environment.
        preload=("serverless_bench.features.remote.delivery", *flags["preload"])
        if is_worker
        else flags["preload"],
        rehearse=({"call": _REHEARSE, "arguments": [rehearsal(first)]},) if is_worker else (),
    )
    return [
        replace(function, name=name, arn=arn(settings.region, name)) for name in flags["function"]
    ]


def _scripted(flags: Mapping[str, Any]) -> "Deliver | None":
    if not flags["scripted"]:
        return None
    from serverless_bench.features.lambda_host.host import Scripted
    from serverless_bench.features.remote.delivery import handle_delivery

    return Scripted(handle_delivery, flags["duration"])


def _exports(region: str, url: str) -> dict[str, str]:
    variables = {"AWS_ENDPOINT_URL_LAMBDA": url, "AWS_ENDPOINT_URL_STS": url}
    if not os.environ.get("AWS_REGION") and not os.environ.get("AWS_DEFAULT_REGION"):
        variables["AWS_DEFAULT_REGION"] = region
    return variables


@contextmanager
def _credentials() -> Iterator[None]:
    """Provide credentials in the environment: the user's, or those of the embedded store."""
    from serverless_bench.clients.aws_credentials import open_session
    from serverless_bench.features.aws.client import explained

    session = open_session()
    # On a machine outside AWS, this provider would wait until its timeout.
    session.get_component("credential_provider").remove("iam-role")
    with explained("credentials"):
        credentials = session.get_credentials()
    if credentials is not None:
        yield
        return
    try:
        from serverless_bench.stores.embedded import embedded_store

        with embedded_store() as held:
            os.environ.setdefault("AWS_ENDPOINT_URL_S3", held.address.endpoint_url)
            yield
    except PluginError as exc:
        hint = f"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or: {exc.hint}"
        raise PluginError(f"no credentials found to pass to functions; {exc}", hint=hint) from exc
