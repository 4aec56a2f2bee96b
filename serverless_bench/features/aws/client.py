"""Clients for AWS's control services, with errors in a line.

None of their requests is measured. Endpoints come from ``AWS_ENDPOINT_URL_<SERVICE>`` if these
are set, as in botocore: this allows a laptop to stand in for AWS.

Lambda's messages tell whether a function will become ready, and what helps. States and their
reasons are those of GetFunctionConfiguration, codes those of Invoke (AWS Lambda API reference).
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.base.errors import ExecutorError
from serverless_bench.clients.aws_credentials import (
    CONFIG,
    UNREADABLE,
    forget_credentials,
    open_session,
)
from serverless_bench.clients.aws_errors import (
    CREDENTIALS,
    CREDENTIALS_HINT,
    credentials_error,
    hint_for,
    network_problem,
    shortened,
)
from serverless_bench.job.endpoint import refuse_password

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


DEFAULT_REGION: Final = "us-east-1"


def open_client(
    service: str,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    look_again: bool = False,
    **config: Any,
) -> Any:
    """Return a botocore client with few retries and short timeouts.

    Parameters
    ----------
    service
        botocore's name, as in ``"lambda"``.
    region
        None takes the AWS configuration's region, or ``DEFAULT_REGION``.
    endpoint_url
        None takes the endpoint of AWS or of the environment.
    look_again
        Whether to discard cached credentials, because a profile may have changed.
    config
        Settings of ``botocore.config.Config`` that differ from those of all clients.
    """
    # Importing this takes a quarter of a second, and most commands need no client.
    from botocore.config import Config

    if look_again:
        forget_credentials()
    with explained(service):
        session = open_session()
        client = session.create_client(
            service,
            region_name=region or session.get_config_variable("region") or DEFAULT_REGION,
            endpoint_url=endpoint_url,
            config=Config(**{**CONFIG, **config}),
        )
    refuse_password(client.meta.endpoint_url)
    return client


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn errors of botocore inside the block into a line for the user.

    Parameters
    ----------
    what
        The service or resource in use, which starts the line.

    Raises
    ------
    ExecutorError
        For all errors of botocore.
    """
    try:
        yield
    except boto.ClientError as exc:
        error = exc.response.get("Error", {})
        # A service that stands in for AWS may respond with an HTML page.
        words = str(error.get("Message", "")).partition("<")[0]
        text = f"{error.get('Code', '')}: {shortened(words) or 'no words'}"
        hint = hint_for(exc) or "check the region, and the permissions of these credentials"
        raise ExecutorError(f"{what}: {text}", hint=hint) from exc
    except CREDENTIALS as exc:
        raise credentials_error(exc) from exc
    except UNREADABLE as exc:
        raise ExecutorError(str(exc), hint=CREDENTIALS_HINT) from exc
    except (boto.BotoCoreError, ValueError) as exc:
        text, hint = network_problem(exc, "check the network, and AWS_ENDPOINT_URL if it is set")
        raise ExecutorError(f"{what}: {text}", hint=hint) from exc


def error_code(error: BaseException) -> str:
    """Return AWS's code of an error that ``explained`` raised; empty if there is none."""
    cause = error.__cause__
    if not isinstance(cause, boto.ClientError):
        return ""
    return str(cause.response.get("Error", {}).get("Code", ""))
