"""Decide from Lambda's messages whether a function will become ready, and suggest a remedy.

States and their reasons are those of GetFunctionConfiguration, codes those of Invoke
(AWS Lambda API reference).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

READY_S: Final = 180.0
"""Time limit for a function to become ready: a VPC's network interfaces take a minute or two."""
WAKING: Final = frozenset(
    {
        "CodeArtifactUserDeletedException",
        "CodeArtifactUserPendingException",
        "ENINotReadyException",
        "ResourceConflictException",
        "ResourceNotReadyException",
        "SnapStartNotReadyException",
    }
)
"""Error codes while a function is created, updated, or reactivated after weeks."""
DEPLOY_AGAIN: Final = "rebuild it with sam build && sam deploy"
_REMEDIES: Final[Mapping[str, str]] = {
    "KMS": "its variables are encrypted with that key: enable it, and allow its role kms:Decrypt",
    "Runtime(Alias|Version)|InvalidRuntime": "deploy it again with a runtime that Lambda still has",
    "OutOfIPAddresses|IPAddressLimit": "free addresses of its subnets, or name larger ones",
    "InvalidSubnet|InvalidSecurityGroup": "its VPC has lost them: name others, and deploy it again",
    "EC2AccessDenied|InsufficientRole": "allow its role ec2:CreateNetworkInterface and the like",
    "(?i:ENILimit)": "Service Quotas, VPC: request more network interfaces, or delete unused ones",
    "ServiceQuota|VcpuLimit|ScalingLimit": "Service Quotas, AWS Lambda: request more, or delete"
    " unused functions",
    "SnapStart(?!NotReady)": "turn SnapStart off, or publish a new version",
    "EFS|S3Files": "detach its file system, which sbench does not need",
    "ZipFile|Image|CodeArtifactUserFailed": DEPLOY_AGAIN,
    "TooLarge": "an event may have 1 MB: take more functions, with fewer keys each",
}
"""Remedies for codes of Invoke and for reasons of states. None of these problems is temporary."""
_BUSY: Final[Mapping[str, str]] = {
    "ReservedFunctionConcurrent": "its own ReservedConcurrency is in use: raise it, or wait until"
    " its functions have ended",
    "CallerRateLimit|FunctionInvocationRateLimit|ThrottlingException": "others send requests, too:"
    " wait a minute, and try again",
    "ServiceException|EC2Throttled": "AWS Lambda has a problem of its own: try again in a minute",
}
"""Hints for temporary rejections of Invoke, by code and ``Reason``."""
_PARTS: Final = ("", "ReasonCode", "Reason")


def remedy(words: str) -> str:
    """Return a remedy for an error or a permanent state; empty if none is known."""
    return next((hint for pattern, hint in _REMEDIES.items() if re.search(pattern, words)), "")


def wait_hint(words: str) -> str:
    """Return a hint for a rejection that lasted too long."""
    hints = (hint for pattern, hint in _BUSY.items() if re.search(pattern, words))
    otherwise = "others may use the account's concurrency: ReservedConcurrency keeps some for it"
    return next(hints, otherwise)


def describe_state(configuration: Mapping[str, Any]) -> str:
    """Return a function's state, an unsuccessful update, and Lambda's reasons.

    Examples
    --------
    >>> describe_state({"State": "Inactive", "StateReasonCode": "Idle"})
    'Inactive: Idle'
    >>> describe_state({"State": "Active", "LastUpdateStatus": "InProgress"})
    'Active; LastUpdateStatus InProgress'
    """
    state, update = (
        ": ".join(filter(None, (configuration.get(member + part) for part in _PARTS)))
        for member in ("State", "LastUpdateStatus")
    )
    is_good = update in {"", "Successful"}
    return (state or "Active") + ("" if is_good else f"; LastUpdateStatus {update}")


def will_be_ready(state: str) -> bool:
    """Return whether ``describe_state`` describes a function in creation or update."""
    return "Pending" in state or "InProgress" in state
