"""Find the deployed functions and the location of their records from the settings."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.location import Place
from serverless_bench.executors import info_of
from serverless_bench.features.aws.stack.template import DeployedFunction, choose
from serverless_bench.job.abilities import ThroughLibrary
from serverless_bench.job.defaults import CONTROL_PREFIX, DEFAULT_PREFIX
from serverless_bench.job.endpoint import (
    is_directory_bucket,
    parse_endpoint,
    zonal_endpoint,
    zone_of,
)
from serverless_bench.job.keys import check_prefix
from serverless_bench.job.meaning import read_names
from serverless_bench.job.settings import JobSettings
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Addressing, StoreProtocol, Target, parse_bucket
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import open_workload

if TYPE_CHECKING:
    from serverless_bench.features.aws.account import Stack

_ARN_REGION: Final = 3
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote(Place):
    """Additional locations that a job needs if its functions are remote."""

    functions: tuple[str, ...] = ()
    """Deployed functions to invoke."""

    deployed: tuple[DeployedFunction, ...] = ()
    """All functions of the stack, if the functions come from a stack."""
    prefix: str
    """Prefix of the control objects."""
    bucket: str | None = None
    """Bucket of the control objects; None for the target's."""
    protocol: StoreProtocol = StoreProtocol.S3
    """Protocol of that bucket."""
    apart: bool = False
    """Whether that bucket is in the functions' region, independent of the target."""

    @property
    def options(self) -> dict[str, Any]:
        """The deployed functions, in place of the stack, and nothing about ``control``."""
        found = {"function": self.functions, "function_region": self.region}
        return {"stack": None, "control_prefix": None, **found}

    def control(self, target: Target) -> Target:
        """Return the location of the records of the job's functions.

        Raises
        ------
        StoreError
            If the bucket has a separate address and cannot be used.
        """
        if self.bucket is not None and (self.apart or self.protocol is not target.protocol):
            from serverless_bench.driver.target import resolve

            wanted = Target(
                bucket=self.bucket,
                protocol=self.protocol,
                prefix=self.prefix,
                region=self.region or "",
                sse=target.sse,
            )
            return resolve(wanted)
        return replace(
            target,
            bucket=self.bucket or target.bucket,
            prefix=self.prefix,
            endpoint_url=standard_endpoint(target),
        )

    def check(self, job: JobSpec) -> None:
        """Raise an error for a prefix that is not valid, or a bucket that lists in no order.

        Raises
        ------
        UsageError
            If functions cannot leave their records there.
        """
        check_prefix(self.prefix)
        if is_directory_bucket(self.bucket or job.target.bucket):
            raise wrong(
                "control_prefix",
                "claims and records are listed in order, which a directory bucket does not do",
                hint="`control_prefix` s3://BUCKET/PREFIX with a bucket of another kind, or"
                " `stack`",
            )

    def check_region(self, target: Target) -> None:
        """Raise an error if functions and bucket are in different regions without confirmation.

        Parameters
        ----------
        target
            Actual location of the bucket.

        Raises
        ------
        UsageError
            If the regions differ and the user has not confirmed it.
        """
        # A bucket on another cloud is always in another place than functions on AWS.
        is_elsewhere = target.protocol is not StoreProtocol.S3
        if self.region is None or self.far or is_elsewhere or self.region == target.region:
            return
        raise UsageError(
            f"the functions are in {self.region}, bucket {target.bucket!r} is in {target.region}:"
            " that is slow, and every byte is billed",
            hint=f"`function_region` {self.region} confirms it",
        )


def place_of(settings: JobSettings, target: Target) -> tuple[Target, Remote]:
    """Return the locations of a job's objects, as far as they are known, and of its functions.

    A stack names both.

    Raises
    ------
    UsageError
        If a setting does not fit the executor, or is missing.
    ExecutorError
        If the stack cannot be used.
    """
    remote = _remote(settings)
    if (name := settings.value("stack")) is not None:
        _check_deployed(settings, target.protocol)
        # Only a job with a stack pays for the import of botocore and for requests to AWS.
        from serverless_bench.features.aws.account import read_stack

        stack = read_stack(name, region=remote.region or settings.region)
        target, remote = _with_stack(stack, settings, target, remote)
    if info_of(settings.executor).invokes:
        _check_reach(settings.executor, remote.functions, target)
    return target, remote


def _remote(settings: JobSettings) -> Remote:
    functions = read_names("function", settings.value("function"))
    region = settings.value("function_region")
    protocol, bucket, prefix = parse_prefix(settings.value("control_prefix"))
    return Remote(
        functions=functions,
        region=region or _region_of(functions),
        far=region is not None,
        prefix=prefix,
        bucket=bucket,
        protocol=protocol,
    )


def _with_stack(
    stack: "Stack", settings: JobSettings, target: Target, remote: Remote
) -> tuple[Target, Remote]:
    """Return the target and the functions, completed with the stack's resources."""
    has_own_store = bool(settings.bucket or target.endpoint_url)
    elsewhere = not has_own_store and stack.data_region != stack.region
    is_control_ours = remote.bucket in {None, stack.control_bucket}
    for prefix, setting, allowed in (
        (None if settings.bucket else target.prefix, "prefix", DEFAULT_PREFIX),
        (remote.prefix if is_control_ours else None, "control_prefix", CONTROL_PREFIX),
    ):
        # The role of the stack's functions allows access below these prefixes only.
        if prefix is not None and not prefix.startswith(allowed):
            raise wrong(
                setting,
                f"{prefix!r} is not below {allowed}, where the stack's functions may write",
                hint=f"as in {allowed}mine/; `bucket` for a bucket of yours",
            )
    target = replace(
        target,
        bucket=target.bucket if settings.bucket else stack.data_bucket,
        region=target.region or stack.data_region,
        store=None,
    )
    functions, deployed = remote.functions, remote.deployed
    if not functions:
        deployed = stack.functions
        memory, arch = settings.value("memory"), settings.value("arch")
        chosen = choose(deployed, client=target.client, memory=memory, arch=arch)
        functions = tuple(function.name for function in chosen)
    remote = replace(
        remote,
        functions=functions,
        region=remote.region or stack.region,
        far=remote.far or elsewhere,
        deployed=deployed,
        bucket=remote.bucket or stack.control_bucket,
        # A store or bucket of the user has a separate address.
        apart=remote.bucket is None and (has_own_store or elsewhere),
    )
    return target, remote


def _check_deployed(settings: JobSettings, protocol: StoreProtocol) -> None:
    """Raise an error for a store or workload that no function of a stack has the modules for."""
    hint = 'its zip contains only the modules that it needs; see "AWS" in the documentation'
    if protocol is not StoreProtocol.S3:
        raise UsageError(f"the deployed function does not speak {protocol}://", hint=hint)
    workload = open_workload(settings.workload)
    if isinstance(workload, ThroughLibrary):
        raise UsageError(workload.not_deployed, hint=hint)


def _region_of(functions: Sequence[str]) -> str | None:
    """Return the region in the ARN of a function; None if it is a plain name."""
    words = functions[0].split(":") if functions else []
    return words[_ARN_REGION] if words[:1] == ["arn"] and len(words) > _ARN_REGION else None


def _check_reach(executor: str, functions: tuple[str, ...], target: Target) -> None:
    if not any(functions):
        raise UsageError(
            f"`executor` {executor} needs to know which function to invoke",
            hint="`stack` NAME for a stack of `sam deploy`, `function` NAME for any other;"
            " `sbench lambda-host` runs one here",
        )
    if target.store is not None and not any(map(os.environ.get, _ENDPOINTS)):
        raise UsageError(
            "functions on AWS cannot reach the embedded store of this machine",
            hint="`stack` NAME or `bucket` B for a bucket there; `sbench lambda-host` for"
            " functions here",
        )


def parse_prefix(text: str | None) -> tuple[StoreProtocol, str | None, str]:
    """Return protocol, optional bucket, and prefix of ``PREFIX`` or ``az://BUCKET/PREFIX``.

    Without a bucket the target's protocol applies, and the returned protocol has no meaning.
    """
    if text is None:
        return StoreProtocol.S3, None, CONTROL_PREFIX
    bucket: str | None
    protocol, bucket, prefix = parse_bucket(text)
    if "://" not in text:
        # A plain name is a prefix here, and not a bucket.
        bucket, prefix = None, text
    if not prefix.strip("/") or prefix.startswith("/"):
        raise wrong(
            "control_prefix",
            f"{text!r} is no prefix",
            hint=f"as in {CONTROL_PREFIX} or s3://bucket/{CONTROL_PREFIX}",
        )
    return protocol, bucket, prefix if prefix.endswith("/") else prefix + "/"


def control_at(control: str, address: Mapping[str, str | None], hint: str) -> Target:
    """Return the location of the records of runs that the flag ``--control`` names.

    Parameters
    ----------
    control
        Value of the flag.
    address
        Values of ``--endpoint-url``, ``--region`` and ``--addressing``.
    hint
        How to give the flag.

    Raises
    ------
    UsageError
        If it is no prefix with a bucket.
    """
    try:
        protocol, bucket, prefix = parse_prefix(control)
    except UsageError as exc:
        # The original message names a setting of jobs, which these commands do not have.
        raise UsageError(f"--control: {control!r} is not a prefix", hint=hint) from exc
    if bucket is None:
        raise UsageError(f"--control: {control!r} has no bucket", hint=hint)
    return Target(
        bucket=bucket,
        protocol=protocol,
        prefix=prefix,
        endpoint_url=parse_endpoint(url) if (url := address["endpoint_url"]) else "",
        addressing=Addressing(address["addressing"] or Addressing.AUTO),
        region=address["region"] or "",
    )


def standard_endpoint(target: Target) -> str:
    """Return the endpoint for standard buckets in the region of a target."""
    zone = zone_of(target.bucket)
    if zone is None or target.endpoint_url != zonal_endpoint(zone, target.region):
        return target.endpoint_url
    return target.endpoint_url.replace(f"s3express-{zone}.", "s3.")
