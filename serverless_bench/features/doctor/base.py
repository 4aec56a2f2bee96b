"""Checks of ``sbench doctor`` for this machine and for an AWS account."""

import os
import platform
import re
import resource
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from botocore import exceptions as boto

from serverless_bench.base.clock import EpochClock, http_date_s, sleep
from serverless_bench.base.errors import PluginError, SbenchError
from serverless_bench.base.units import GIB, format_seconds, format_size
from serverless_bench.cli.output.installing import of_extras
from serverless_bench.clients.aws_credentials import open_session
from serverless_bench.clients.environment import find_proxy, without_user
from serverless_bench.driver.location import room_of_store
from serverless_bench.driver.origin import version_of
from serverless_bench.features.aws.account import (
    FunctionSetup,
    Stack,
    read_function,
    read_network_quota,
    read_quota,
    read_stack,
)
from serverless_bench.features.aws.client import (
    DEPLOY_AGAIN,
    READY_S,
    explained,
    open_client,
    remedy,
    will_be_ready,
)
from serverless_bench.features.aws.lambda_network import BASE_MBPS, RAISED_FROM_MIB, SOURCE
from serverless_bench.features.doctor.findings import Finding, clock, fail, ok, warn
from serverless_bench.stores.seaweedfs import find_program
from serverless_bench.version import __version__

_OF_OTHERS: Final = frozenset({"all", "arrays", "clients"})
"""Extras that consist of others."""
_FUNCTION_TIMEOUT_S: Final = 900
_MOST_EVENT_AGE_S: Final = 3600
_OPEN_FILES: Final = 1024
_ROOM_BYTES: Final = GIB
_PROBES: Final = 12
_PROBE_EVERY_S: Final = 0.093
"""Interval that spreads the probes over all phases of a second, as dates are whole seconds: the
probes around the change of the second give the offset."""
_MOST_MINUTES: Final = 24 * 60


@dataclass(slots=True, kw_only=True)
class Patient:
    """Subject of the checks, with results of earlier checks."""

    region: str | None = None
    run_s: float = 900.0
    """Expected duration of the run."""
    account: str | None = None
    stack: Stack | None = None
    functions: tuple[str, ...] = ()
    setups: list[FunctionSetup] = field(default_factory=list)
    network_mbps: float = BASE_MBPS
    """Network quota of one function."""


def unless_it_fails(what: str, check: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of a check, and turn an error that stops it into a finding."""
    try:
        yield from check
    except SbenchError as exc:
        yield fail(what, str(exc), exc.hint)


def versions() -> Iterator[Finding]:
    """Report the versions of Python and the libraries."""
    yield ok("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    libraries = ", ".join(
        f"{name} {version_of(name)}"
        for name in ("botocore", "click", "cryptography", "numpy", "orjson", "rich")
    )
    yield ok("sbench", f"{__version__} with {libraries}")
    lacking = {of for text, of in of_extras() if version_of(_name(text)) is None}
    absent = sorted(lacking - _OF_OTHERS)
    if absent:
        text = f"not installed: {', '.join(absent)}"
        yield ok("extras", f"{text}; a command that needs one says how to install it")


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]


def machine() -> Iterator[Finding]:
    """Check the resources of this machine that the driver needs."""
    folder = Path.cwd()
    yield (
        ok("run directory", f"{folder} can be written")
        if os.access(folder, os.W_OK)
        else fail("run directory", f"{folder} cannot be written", "change to another directory")
    )
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    text, hint = f"{soft} are allowed, too few for 1,000 workers", f"ulimit -n {_OPEN_FILES}"
    yield (
        warn("open files", text, hint)
        if soft < _OPEN_FILES
        else ok("open files", f"{soft} are allowed")
    )
    folder, free = room_of_store()
    text = f"{format_size(free)} free in {folder}"
    hint = "free disk space, or set SBENCH_STORE_DIR to a folder on another disk"
    yield warn("disk", text, hint) if free < _ROOM_BYTES else ok("disk", text)
    try:
        find_program()
    except PluginError as exc:
        yield warn("embedded store", str(exc), exc.hint)
    else:
        yield ok("embedded store", "installed")


def proxies(store: str | None) -> Iterator[Finding]:
    """Report the proxies on the way to AWS and to another store."""
    for url in (store or "https://s3.amazonaws.com", "https://sts.amazonaws.com"):
        if (proxy := find_proxy(url)) is not None:
            yield ok("proxy", f"{urlsplit(url).hostname} is reached through {without_user(proxy)}")


def credentials(patient: Patient) -> Iterator[Finding]:
    """Check that credentials exist and do not expire during the run."""
    with explained("credentials"):
        keys = open_session().get_credentials()
        if keys is not None:
            keys.get_frozen_credentials()
    if keys is None:
        hint = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        yield fail("credentials", "there are none", hint)
        return
    left_s = _seconds_left(keys)
    if left_s is None:
        text = "no expiry is known" if keys.token else "they do not expire"
        yield ok("credentials", f"from {keys.method}; {text}")
        return
    text, wanted_s = f"from {keys.method}; they last {format_seconds(left_s)}", 2 * patient.run_s
    hint = f"renew them: {format_seconds(wanted_s)} are twice the run (--run-duration)"
    short = warn("credentials", f"{text} only", hint)
    yield short if left_s < wanted_s else ok("credentials", f"{text} or more")


def _seconds_left(credentials: Any) -> float | None:
    """Return the remaining lifetime of credentials in whole minutes; None if unknown."""
    needed = getattr(credentials, "refresh_needed", None)
    if needed is None or not needed(refresh_in=1 << 40):
        return None
    minutes = range(1, _MOST_MINUTES + 1)
    return 60.0 * bisect_left(minutes, x=True, key=lambda minute: needed(refresh_in=minute * 60))


def stack(name: str, patient: Patient) -> Iterator[Finding]:
    """Check a stack; later checks use the region, functions and buckets of the stack."""
    patient.stack = outputs = read_stack(name, region=patient.region)
    patient.region = outputs.region
    patient.functions = patient.functions or tuple(entry.name for entry in outputs.functions)
    yield ok(f"stack {name}", f"in {outputs.region}")


def identity(patient: Patient) -> Iterator[Finding]:
    """Report the AWS identity, and the offset of this machine's clock from the clock of AWS."""
    from serverless_bench.metrics.clock_offsets import store_offset

    with closing(open_client("sts", region=patient.region)) as client:
        probes = _probes(client.get_caller_identity)
        yield clock(store_offset(probes), answered=bool(probes))
        with explained("sts:GetCallerIdentity"):
            caller = client.get_caller_identity()
    patient.account = caller["Account"]
    yield ok("identity", caller["Arn"])


def _probes(ask: Callable[[], Any]) -> list[tuple[int, int, int]]:
    """Request the time; see ``store_offset``. Rejected requests are answered with a date, too."""
    clock, probes = EpochClock(), []
    for number in range(_PROBES):
        if number:
            sleep(_PROBE_EVERY_S)
        sent_ns = clock.now_ns()
        try:
            response = ask()
        except boto.ClientError as exc:
            response = exc.response
        except boto.BotoCoreError:
            break
        received_ns = clock.now_ns()
        date_s = http_date_s(response["ResponseMetadata"]["HTTPHeaders"].get("date"))
        if date_s is not None:
            probes.append((sent_ns, received_ns, date_s))
    return probes


def quota(patient: Patient) -> Finding:
    """Check how many functions the account may run concurrently."""
    try:
        limits = read_quota(region=patient.region)
    except SbenchError as exc:
        return warn("quota", str(exc), "allow lambda:GetAccountSettings, or plan with --quota")
    where = f" in {patient.region}" if patient.region else ""
    # AWS lets nobody reserve the last hundred (AWS Lambda developer guide, "Configuring reserved
    # concurrency for a function").
    text = (
        f"concurrency {limits.concurrent}{where}, {limits.unreserved} unreserved"
        f" ({max(0, limits.unreserved - 100)} reservable)"
    )
    hint = "request an increase: Service Quotas, Lambda, concurrent executions"
    if limits.unreserved < 1:
        return fail("quota", text, hint)
    # A new account has both limits.
    return (
        warn("quota", text, f"{hint}; until then a function may be limited to 3,008 MB")
        if limits.concurrent < 1000
        else ok("quota", text)
    )


def network_quota(patient: Patient) -> Finding:
    """Report the network quota of a function; without permission, report the default."""
    text = f"{BASE_MBPS:g} Mbps for each function ({SOURCE})"
    try:
        mbps = read_network_quota(region=patient.region)
    except SbenchError as exc:
        return ok("network", f"{text}; the quota of the account could not be read: {exc}")
    if mbps is None or mbps <= BASE_MBPS:
        return ok("network", text)
    patient.network_mbps = mbps
    raised = f"up to {mbps:g} Mbps, with {RAISED_FROM_MIB} MB or more and outside a VPC"
    return ok("network", f"{raised}: pass --network-quota {mbps:g} to sbench plan")


def function(name: str, patient: Patient) -> Iterator[Finding]:
    """Check the configuration of a function."""
    setup = read_function(name, region=patient.region)
    patient.setups.append(setup)
    what = f"function {name}"
    text = f"{setup.memory_mib} MB, {setup.architecture}, {setup.runtime}, {setup.state}"
    text += ", in a VPC" if setup.in_vpc else ", in no VPC"
    if setup.state == "Active":
        yield ok(what, text)
    elif will_be_ready(setup.state) or setup.state.startswith("Inactive"):
        yield warn(what, text, f"a run waits for it, up to {READY_S / 60:g} minutes")
    else:
        # An active function keeps its previous version after a failed update.
        judge = warn if setup.state.startswith("Active") else fail
        yield judge(what, text, remedy(setup.state) or DEPLOY_AGAIN)
    attempts = "twice" if setup.retries is None else f"{setup.retries} times"
    age_s = 21600 if setup.event_age_s is None else setup.event_age_s
    config = "set its EventInvokeConfig:"
    for is_wrong, problem, hint in (
        (
            setup.timeout_s < _FUNCTION_TIMEOUT_S,
            f"AWS stops it after {setup.timeout_s} s",
            f"set its timeout to {_FUNCTION_TIMEOUT_S}",
        ),
        (
            setup.retries != 0,
            f"AWS retries failed events {attempts}",
            f"{config} MaximumRetryAttempts 0",
        ),
        (
            age_s > _MOST_EVENT_AGE_S,
            f"an event may arrive {age_s} s late",
            f"{config} MaximumEventAgeInSeconds, a few minutes",
        ),
        (setup.in_vpc, "in a VPC: slow, and expensive behind NAT", "remove it from the VPC"),
    ):
        if is_wrong:
            yield warn(what, problem, hint)
    if setup.reserved == 0:
        yield fail(what, "cannot run: its reserved concurrency is 0", "raise or remove it")
    elif setup.reserved is not None:
        yield ok(what, f"reserved concurrency is {setup.reserved}")
    if setup.version not in {None, __version__}:
        hint = "sam build && sam deploy"
        yield warn(what, f"has sbench {setup.version}, but this is {__version__}", hint)
