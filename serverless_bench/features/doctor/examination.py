"""Checks of ``sbench doctor``: this machine, and the account with its functions and buckets."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, Final

from serverless_bench.cli.flags.options import with_flags
from serverless_bench.cli.output.terminal import say
from serverless_bench.clients.clouds import Cloud, cloud_of
from serverless_bench.executors import EXECUTORS, executors_where, info_of
from serverless_bench.features.doctor.base import (
    Patient,
    credentials,
    function,
    identity,
    machine,
    network_quota,
    proxies,
    quota,
    stack,
    unless_it_fails,
    versions,
)
from serverless_bench.features.doctor.buckets import look_at
from serverless_bench.features.doctor.findings import Finding, Level, fail, ok
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.target import Target, parse_bucket

_COLORS: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_PLACE: Final = ("scheduler", "slots")
"""Settings for the machines on which an executor runs functions."""


def with_flags_in(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with flags in place of settings."""
    for raw in findings:
        yield replace(raw, text=with_flags(raw.text), hint=with_flags(raw.hint))


def show_findings(findings: Iterable[Finding]) -> bool:
    """Print each finding as it arrives, and return whether one prevents a run."""
    failed = False
    for finding in findings:
        hint = f" -> {finding.hint}" if finding.hint else ""
        line = f"{finding.level.value:4}  {finding.what}: {finding.text}{hint}"
        say(line, fg=_COLORS[finding.level])
        failed |= finding.level is Level.FAIL
    return failed


def examine(flags: Mapping[str, Any]) -> Iterator[Finding]:
    """Run the checks one after the other and yield their findings."""
    patient = Patient(
        region=flags["region"], run_s=flags["run_duration"], functions=flags["function"] or ()
    )
    yield from versions()
    yield from machine()
    yield from proxies(flags["endpoint_url"])
    yield from _place(flags)
    if flags["stack"] or flags["bucket"] or flags["function"]:
        yield from examine_account(flags, patient)


def examine_account(flags: Mapping[str, Any], patient: Patient) -> Iterator[Finding]:
    """Run the checks of an account, its functions and buckets."""
    cloud = cloud_of(parse_bucket(flags["bucket"] or "")[0])
    yield from _credentials(cloud, flags, patient)
    if flags["stack"] is not None:
        yield from unless_it_fails(f"stack {flags['stack']}", stack(flags["stack"], patient))
    # Stores outside AWS usually have no STS to request our identity from.
    if patient.functions or (flags["endpoint_url"] is None and cloud is None):
        yield from unless_it_fails("identity", identity(patient))
    if patient.functions:
        yield quota(patient)
        yield network_quota(patient)
    for name in patient.functions:
        yield from unless_it_fails(f"function {name}", function(name, patient))
    buckets = list(_buckets(flags["bucket"], flags["endpoint_url"], patient))
    for name in patient.functions if flags["probe"] else ():
        yield from unless_it_fails(f"function {name}", _answers(name, patient, *buckets[:1]))
    for bucket in buckets:
        yield from look_at(bucket, patient, write_test=flags["write_test"])


def _place(flags: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the machines of the executor from --executor, or of executors with these settings."""
    given = {name: flags[name] for name in _PLACE if flags[name] is not None}
    names = [flags["executor"]] if flags["executor"] else []
    if given and not names:
        names = executors_where(lambda info: not info.settings.isdisjoint(given))
    for name in names:
        if examine := info_of(name).examine:
            yield from unless_it_fails(name, resolve_name(examine)(**given))


def _credentials(
    cloud: Cloud | None, flags: Mapping[str, Any], patient: Patient
) -> Iterator[Finding]:
    """Check the credentials of a cloud, and those of AWS if a stack or a function needs them."""
    if cloud is not None and cloud.has_credentials(flags["endpoint_url"] or ""):
        yield ok("credentials", "from the environment; no expiry is known")
    elif cloud is not None:
        yield fail("credentials", "there are none", cloud.credentials_hint)
    if cloud is None or flags["stack"] or flags["function"]:
        yield from unless_it_fails("credentials", credentials(patient))


def _answers(name: str, patient: Patient, target: Target | None = None) -> Iterator[Finding]:
    """Invoke a function once, and check its environment and its access to objects of jobs."""
    from serverless_bench.driver.target import resolve

    control = None
    if target is not None:
        target = resolve(target)
        control = replace(target, prefix=CONTROL_PREFIX)
        if patient.stack is not None:
            control = resolve(
                Target(
                    bucket=patient.stack.control_bucket,
                    prefix=CONTROL_PREFIX,
                    region=patient.stack.region,
                )
            )
    region = patient.region or (target and target.region)
    for try_out in filter(None, (info_of(executor).try_out for executor in EXECUTORS)):
        yield from resolve_name(try_out)(name, region, target, control)


def _buckets(named: str | None, url: str | None, patient: Patient) -> Iterator[Target]:
    stack = patient.stack
    place: dict[str, Any] = {"endpoint_url": url or "", "region": patient.region or ""}
    data = [named, stack.data_bucket if stack else None]
    for text in dict.fromkeys(filter(None, data)):
        protocol, name, _ = parse_bucket(text)
        yield Target(bucket=name, protocol=protocol, **place)
    if stack is not None:
        yield Target(bucket=stack.control_bucket, prefix=CONTROL_PREFIX, **place)
