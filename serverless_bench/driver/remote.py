"""From settings to deployed functions and the place where they leave their records."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from serverless_bench.aws.stack.functions import DeployedFunction, choose
from serverless_bench.driver.location import Location
from serverless_bench.driver.settings import JobSettings
from serverless_bench.errors import UsageError
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.target import Target
from serverless_bench.job.types import wrong

_INVOKING: Final = frozenset({"lambda"})
"""Executors that invoke deployed functions."""
_REMOTE: Final = _INVOKING | {"lithops"}
"""Executors whose functions leave their records in the store."""
_DEPLOYED: Final = "wire"
"""The client that ``sam build`` packs."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """What a job needs besides its target, when its functions are remote."""

    functions: tuple[str, ...] = ()
    deployed: tuple[DeployedFunction, ...] = ()
    """All that the stack has, if a stack is where they come from."""
    prefix: str | None = None
    """Of the control objects; None for executors that need none."""
    bucket: str | None = None
    """Of the control objects; None for the target's."""

    def control(self, target: Target) -> Target | None:
        """Return where the job's functions leave their records."""
        if self.prefix is None:
            return None
        return replace(target, bucket=self.bucket or target.bucket, prefix=self.prefix)


def locate(settings: JobSettings) -> tuple[Location, Remote]:
    """Return where a job's objects are, and its functions; a stack says both.

    Raises
    ------
    UsageError
        If a setting does not fit the executor, or is missing.
    ExecutorError
        If the stack cannot be used.
    """
    location = Location(
        bucket=settings.bucket,
        endpoint_url=settings.endpoint_url,
        region=settings.region,
        addressing=settings.addressing,
        client=settings.client,
        prefix=settings.prefix,
    )
    executor, name, function = settings.executor, settings.stack, settings.function
    functions = (function,) if isinstance(function, str) else function
    if executor not in _INVOKING:
        _refuse_idle(executor, {"stack": name, "function": functions})
    if executor not in _REMOTE:
        idle = ("control_prefix", "memory", "arch")
        _refuse_idle(executor, {one: getattr(settings, one) for one in idle})
        return location, Remote()
    bucket, prefix = _parse_prefix(settings.control_prefix)
    deployed: tuple[DeployedFunction, ...] = ()
    if name is not None:
        if settings.client != _DEPLOYED:
            raise UsageError(
                f"the deployed function has the client {_DEPLOYED!r} and not {settings.client!r}",
                hint="its zip holds what the body needs and no more; docs/aws.md",
            )
        # Only a job with a stack waits for AWS, and for what reads its answers.
        from serverless_bench.aws.cloudformation import read_stack  # noqa: PLC0415

        stack = read_stack(name, region=settings.region)
        location = replace(
            location,
            bucket=location.bucket or stack.data_bucket,
            region=location.region or stack.data_region,
        )
        if not functions:
            deployed = stack.functions
            chosen = choose(deployed, memory=settings.memory, arch=settings.arch)
            functions = tuple(one.name for one in chosen)
        bucket = bucket or stack.control_bucket
    if executor in _INVOKING:
        _check_reach(functions, location)
    return location, Remote(functions=functions, deployed=deployed, prefix=prefix, bucket=bucket)


def _check_reach(functions: tuple[str, ...], location: Location) -> None:
    if not any(functions):
        raise UsageError(
            "`executor` lambda needs to know which function to invoke",
            hint="`stack` NAME for what `sam deploy` made, `function` NAME for any other;"
            " `sbench lambda-host` runs one here",
        )
    if location.embedded and not any(os.environ.get(variable) for variable in _ENDPOINTS):
        raise UsageError(
            "functions on AWS cannot reach the embedded store of this machine",
            hint="`stack` NAME or `bucket` B for a bucket there; `sbench lambda-host` for"
            " functions here",
        )


def _refuse_idle(executor: str, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value:
            raise wrong(name, f"means nothing to `executor` {executor}", hint="`executor` lambda")


def _parse_prefix(text: str | None) -> tuple[str | None, str]:
    """Return bucket, if there is one, and prefix of ``PREFIX`` or ``s3://BUCKET/PREFIX``."""
    if text is None:
        return None, CONTROL_PREFIX
    bucket: str | None = None
    prefix = text
    if text.startswith("s3://"):
        bucket, _, prefix = text.removeprefix("s3://").partition("/")
    if bucket == "" or not prefix.strip("/") or prefix.startswith("/"):
        raise wrong(
            "control_prefix",
            f"{text!r} is no prefix",
            hint=f"as in {CONTROL_PREFIX} or s3://bucket/{CONTROL_PREFIX}",
        )
    return bucket, prefix if prefix.endswith("/") else prefix + "/"
