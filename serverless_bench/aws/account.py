"""An AWS account: what it allows, how a function in it is set up, and what ``sam deploy`` made."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from serverless_bench.aws.client import error_code, explained, open_client
from serverless_bench.aws.function_states import describe_state
from serverless_bench.aws.stack.template import DeployedFunction, functions_in
from serverless_bench.errors import ExecutorError, UsageError

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
"""States in which every resource of a stack is there (AWS CloudFormation user guide,
"Understand CloudFormation stack creation events")."""

_OUTPUTS: Final = {
    "data_bucket": "DataBucket",
    "data_region": "DataRegion",
    "control_bucket": "ControlBucket",
    "region": "Region",
}
_MBPS: Final = {"Gigabits/Second": 1e3, "Megabits/Second": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The outputs of a stack that a template of ``sbench aws stack`` made."""

    functions: tuple[DeployedFunction, ...]
    """All of them; a job without further wishes gets those that are like the first."""
    data_bucket: str
    data_region: str
    """Where the data bucket is."""
    control_bucket: str
    region: str
    """Where the functions and the control bucket are."""


def read_stack(name: str, *, region: str | None = None) -> Stack:
    """Return the outputs of the stack that is called ``name``.

    Parameters
    ----------
    name
        The stack's name or ARN.
    region
        Where it was deployed; None takes the AWS configuration's region.

    Raises
    ------
    UsageError
        If there is no such stack.
    ExecutorError
        If it is not complete, is not sbench's, or cannot be read.
    """
    client = open_client("cloudformation", region=region)
    try:
        with closing(client), explained(f"stack {name!r}"):
            found = client.describe_stacks(StackName=name)["Stacks"]
    except ExecutorError as exc:
        if error_code(exc) == "ValidationError":
            raise UsageError(
                f"there is no stack {name!r} in {client.meta.region_name}",
                hint="sam deploy makes it; `region`, if it is elsewhere",
            ) from exc
        raise
    return _outputs(name, found[0])


def _outputs(name: str, described: Mapping[str, Any]) -> Stack:
    status = described["StackStatus"]
    if status not in _USABLE:
        raise ExecutorError(
            f"stack {name!r} is not ready: {status}",
            hint="sam deploy brings it in order; its events say what went wrong",
        )
    there = {o["OutputKey"]: o["OutputValue"] for o in described.get("Outputs", ())}
    functions = functions_in(there)
    missing = [output for output in _OUTPUTS.values() if output not in there]
    if missing or not functions:
        raise ExecutorError(
            f"stack {name!r} has no output {', '.join(missing or ['Function1'])}",
            hint="deploy what this version of sbench writes: sbench aws stack",
        )
    values = {field: there[output] for field, output in _OUTPUTS.items()}
    return Stack(functions=functions, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Functions at once in one region, all functions of the account together."""

    concurrent: int
    unreserved: int
    """What is left for functions without a reserved concurrency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSetup:
    """One deployed function."""

    name: str
    arn: str
    memory_mib: int
    timeout_s: int
    architecture: str
    runtime: str
    in_vpc: bool
    state: str
    """``Active``, or what ``describe_state`` says."""
    version: str | None
    """Of sbench in it, if its description or environment says so."""
    reserved: int | None
    """Functions at once that are reserved for it; None for none."""
    retries: int | None
    """After a failed event; None if nothing is set, which AWS takes for 2."""
    event_age_s: int | None
    """None if nothing is set, which AWS takes for 21,600."""


def read_quota(*, region: str | None = None) -> Quota:
    """Return what the account allows (``lambda:GetAccountSettings``).

    Raises
    ------
    ExecutorError
        If AWS does not answer.
    """
    client = open_client("lambda", region=region)
    with closing(client), explained("lambda:GetAccountSettings"):
        limit = client.get_account_settings()["AccountLimit"]
    return Quota(
        concurrent=limit["ConcurrentExecutions"],
        unreserved=limit["UnreservedConcurrentExecutions"],
    )


def read_network_quota(*, region: str | None = None) -> float | None:
    """Return the quota for the network of one function, in 10**6 bits per second.

    Returns
    -------
    float or None
        None if AWS lists no such quota.

    Raises
    ------
    ExecutorError
        If AWS does not answer, or does not allow ``servicequotas:ListServiceQuotas``.
    """
    client = open_client("service-quotas", region=region)
    with closing(client), explained("servicequotas:ListServiceQuotas"):
        pages = client.get_paginator("list_service_quotas").paginate(ServiceCode="lambda")
        return network_mbps([quota for page in pages for quota in page["Quotas"]])


def network_mbps(quotas: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the quota for the network of one function among those of Lambda; None if none is.

    Its code is not documented; its name and its unit say which one it is.
    """
    for quota in quotas:
        scale = _MBPS.get(quota.get("Unit", ""), 1.0)
        name = quota["QuotaName"].lower()
        if "bandwidth" in name or ("network" in name and "interface" not in name):
            return float(quota["Value"]) * scale
    return None


def read_function(name: str, *, region: str | None = None) -> FunctionSetup:
    """Return how a function is set up.

    Raises
    ------
    ExecutorError
        If there is no such function, or AWS does not answer.
    """
    with closing(open_client("lambda", region=region)) as client:
        with explained(f"function {name!r}"):
            found = client.get_function_configuration(FunctionName=name)
        events = _unless_absent(client, "get_function_event_invoke_config", name)
        # A reserve is the function's, not a version's: Lambda refuses to be asked for one.
        concurrency = _unless_absent(client, "get_function_concurrency", unqualified(name))
    variables = found.get("Environment", {}).get("Variables", {})
    return FunctionSetup(
        name=found["FunctionName"],
        arn=found["FunctionArn"],
        memory_mib=found["MemorySize"],
        timeout_s=found["Timeout"],
        architecture=next(iter(found.get("Architectures", ())), "x86_64"),
        runtime=found.get("Runtime", ""),
        in_vpc=bool(found.get("VpcConfig", {}).get("SubnetIds")),
        state=describe_state(found),
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


def _unless_absent(client: Any, call: str, name: str) -> dict[str, Any]:  # noqa: ANN401 - botocore's
    """Return an answer, or nothing if AWS says that there is none."""
    try:
        with explained(f"lambda:{call}"):
            answer: dict[str, Any] = getattr(client, call)(FunctionName=name)
    except ExecutorError as exc:
        if error_code(exc) == "ResourceNotFoundException":
            return {}
        raise
    return answer
