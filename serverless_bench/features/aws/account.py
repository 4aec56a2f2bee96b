"""Quotas of an AWS account, the setup of its functions, and the outputs of ``sam deploy``."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from serverless_bench.base.errors import ExecutorError, UsageError
from serverless_bench.features.aws.client import describe_state, error_code, explained, open_client
from serverless_bench.features.aws.stack.template import DeployedFunction, functions_in

_USABLE: Final = frozenset(
    {
        "CREATE_COMPLETE",
        "IMPORT_COMPLETE",
        "IMPORT_ROLLBACK_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
    }
)
"""States with all resources of a stack in place (AWS CloudFormation user guide, "Understand
CloudFormation stack creation events").
"""

_OUTPUTS: Final = {
    "data_bucket": "DataBucket",
    "data_region": "DataRegion",
    "control_bucket": "ControlBucket",
    "region": "Region",
}
_MBPS: Final = {"Gigabits/Second": 1e3, "Megabits/Second": 1.0}
_QUOTA_UNKNOWN: Final = 1000
"""Default quota of an account; new accounts have less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimits:
    """Limits of the number of concurrent functions of a job."""

    asked: int
    quota: int | None
    """The account's quota for functions without reserved concurrency; None if unknown."""
    reserved: Mapping[str, int] = field(default_factory=dict)
    """Reserved concurrency by function, for functions that have it."""
    functions: int = 1
    """Number of functions that take turns."""
    round_trip_s: float
    """The shortest response time of Lambda's API to the driver."""

    @property
    def effective(self) -> int:
        """Maximum number of concurrent functions; below 1 if none can run."""
        shares = [number * self.functions for number in self.reserved.values()]
        if unreserved := self.functions - len(self.reserved):
            quota = _QUOTA_UNKNOWN if self.quota is None else self.quota
            shares.append(quota * self.functions // unreserved)
        return min(self.asked, *shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The outputs of a stack that was deployed from a template of ``sbench aws stack``."""

    functions: tuple[DeployedFunction, ...]
    """All functions; a job without a selection uses those with the properties of the first."""
    data_bucket: str
    data_region: str
    """Region of the data bucket."""
    control_bucket: str
    region: str
    """Region of the functions and the control bucket."""


def read_stack(name: str, *, region: str | None = None) -> Stack:
    """Return the outputs of a stack.

    Parameters
    ----------
    name
        The stack's name or ARN.
    region
        Region of the stack; None takes the AWS configuration's region.

    Raises
    ------
    UsageError
        If the stack does not exist.
    ExecutorError
        If it is incomplete, does not belong to sbench, or cannot be read.
    """
    client = open_client("cloudformation", region=region)
    try:
        with closing(client), explained(f"stack {name!r}"):
            stacks = client.describe_stacks(StackName=name)["Stacks"]
    except ExecutorError as exc:
        if error_code(exc) == "ValidationError":
            raise UsageError(
                f"there is no stack {name!r} in {client.meta.region_name}",
                hint="sam deploy makes it; `region`, if it is elsewhere",
            ) from exc
        raise
    return _outputs(name, stacks[0])


def _outputs(name: str, described: Mapping[str, Any]) -> Stack:
    status = described["StackStatus"]
    if status not in _USABLE:
        raise ExecutorError(
            f"stack {name!r} is not ready: {status}",
            hint="repair it with sam deploy; its events name the error",
        )
    outputs = {o["OutputKey"]: o["OutputValue"] for o in described.get("Outputs", ())}
    functions = functions_in(outputs)
    missing = [output for output in _OUTPUTS.values() if output not in outputs]
    if missing or not functions:
        raise ExecutorError(
            f"stack {name!r} has no output {', '.join(missing or ['Function1'])}",
            hint="deploy the stack of this version of sbench: sbench aws stack",
        )
    values = {field: outputs[output] for field, output in _OUTPUTS.items()}
    return Stack(functions=functions, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits of concurrent functions in one region for the whole account."""

    concurrent: int
    unreserved: int
    """Concurrency that is left for functions without a reserved concurrency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSetup:
    """A deployed function."""

    name: str
    arn: str
    memory_mib: int
    timeout_s: int
    architecture: str
    runtime: str
    in_vpc: bool
    state: str
    """``Active``, or the result of ``describe_state``."""
    version: str | None
    """Version of sbench in the function, from its description or environment; None if unknown."""
    reserved: int | None
    """Reserved concurrency of the function; None without a reservation."""
    retries: int | None
    """Retries after a failed event; None for the default of AWS, which is 2."""
    event_age_s: int | None
    """None for the default of AWS, which is 21,600."""


def read_quota(*, region: str | None = None) -> Quota:
    """Return the limits of concurrency in the account (``lambda:GetAccountSettings``).

    Raises
    ------
    ExecutorError
        If AWS does not respond.
    """
    client = open_client("lambda", region=region)
    with closing(client), explained("lambda:GetAccountSettings"):
        limit = client.get_account_settings()["AccountLimit"]
    return Quota(
        concurrent=limit["ConcurrentExecutions"],
        unreserved=limit["UnreservedConcurrentExecutions"],
    )


def read_network_quota(*, region: str | None = None) -> float | None:
    """Return the quota for the network of a function, in 10**6 bits per second.

    Returns
    -------
    float or None
        None if AWS lists no such quota.

    Raises
    ------
    ExecutorError
        If AWS does not respond, or denies ``servicequotas:ListServiceQuotas``.
    """
    client = open_client("service-quotas", region=region)
    with closing(client), explained("servicequotas:ListServiceQuotas"):
        pages = client.get_paginator("list_service_quotas").paginate(ServiceCode="lambda")
        return network_mbps([quota for page in pages for quota in page["Quotas"]])


def network_mbps(quotas: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the network quota of a function from the quotas of Lambda; None if it is missing.

    Its code is not documented, so that it is identified by name and unit.
    """
    for quota in quotas:
        scale = _MBPS.get(quota.get("Unit", ""), 1.0)
        name = quota["QuotaName"].lower()
        if "bandwidth" in name or ("network" in name and "interface" not in name):
            return float(quota["Value"]) * scale
    return None


def read_function(name: str, *, region: str | None = None) -> FunctionSetup:
    """Return the setup of a function.

    Raises
    ------
    ExecutorError
        If the function does not exist, or AWS does not respond.
    """
    with closing(open_client("lambda", region=region)) as client:
        with explained(f"function {name!r}"):
            configuration = client.get_function_configuration(FunctionName=name)
        events = _unless_absent(client, "get_function_event_invoke_config", name)
        # Reserved concurrency belongs to the function: Lambda rejects the request for a version.
        concurrency = _unless_absent(client, "get_function_concurrency", unqualified(name))
    variables = configuration.get("Environment", {}).get("Variables", {})
    return FunctionSetup(
        name=configuration["FunctionName"],
        arn=configuration["FunctionArn"],
        memory_mib=configuration["MemorySize"],
        timeout_s=configuration["Timeout"],
        architecture=next(iter(configuration.get("Architectures", ())), "x86_64"),
        runtime=configuration.get("Runtime", ""),
        in_vpc=bool(configuration.get("VpcConfig", {}).get("SubnetIds")),
        state=describe_state(configuration),
        version=variables.get("SBENCH_VERSION"),
        reserved=concurrency.get("ReservedConcurrentExecutions"),
        retries=events.get("MaximumRetryAttempts"),
        event_age_s=events.get("MaximumEventAgeInSeconds"),
    )


def unqualified(name: str) -> str:
    """Return the name, or the ARN, of a function without its version or alias.

    Examples
    --------
    >>> unqualified("worker:live"), unqualified("worker")
    ('worker', 'worker')
    >>> unqualified("arn:aws:lambda:eu-west-1:123456789012:function:worker:live")
    'arn:aws:lambda:eu-west-1:123456789012:function:worker'
    """
    head, function, tail = name.rpartition("function:")
    return head + function + tail.partition(":")[0]


def _unless_absent(client: Any, call: str, name: str) -> dict[str, Any]:
    """Return a response, or an empty one if AWS reports that the resource does not exist."""
    try:
        with explained(f"lambda:{call}"):
            answer: dict[str, Any] = getattr(client, call)(FunctionName=name)
    except ExecutorError as exc:
        if error_code(exc) == "ResourceNotFoundException":
            return {}
        raise
    return answer
