"""What ``sam deploy`` made: the outputs of a CloudFormation stack."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from serverless_bench.aws.client import error_code, explained, open_client
from serverless_bench.aws.stack.functions import DeployedFunction, functions_in
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
