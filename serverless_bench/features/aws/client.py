"""Clients for AWS's control services, with errors in a line.

None of their requests is measured. Endpoints come from ``AWS_ENDPOINT_URL_<SERVICE>`` if these
are set, as in botocore: this allows a laptop to stand in for AWS.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from botocore import exceptions as boto

from serverless_bench.base.errors import ExecutorError
from serverless_bench.clients.certificates import CA_HINT, refusal
from serverless_bench.clients.environment import PROXY_HINT, ca_bundle
from serverless_bench.job.endpoint import refuse_password

if TYPE_CHECKING:
    from botocore.loaders import Loader
    from botocore.session import Session

DEFAULT_REGION: Final = "us-east-1"
CONFIG: Final[Mapping[str, Any]] = {
    "connect_timeout": 5,
    "read_timeout": 30,
    "retries": {"mode": "standard", "total_max_attempts": 3},
    # Many S3-compatible stores do not support the newer checksums.
    "request_checksum_calculation": "when_required",
    "response_checksum_validation": "when_required",
}
_MESSAGE_CHARS: Final = 500
NO_CREDENTIALS: Final = (boto.NoCredentialsError, boto.PartialCredentialsError)
LOST_CREDENTIALS: Final = (
    boto.CredentialRetrievalError,
    boto.LoginError,
    boto.SSOError,
    boto.TokenRetrievalError,
)
"""Errors of credentials that could not be renewed, which can be temporary."""
CREDENTIALS: Final = (*NO_CREDENTIALS, *LOST_CREDENTIALS, boto.MissingDependencyException)
"""Errors of credentials that are missing, cannot be renewed, or need a library."""
UNREADABLE: Final = (boto.ProfileNotFound, boto.ConfigParseError)
"""Errors of a profile that does not exist, or of a file that cannot be read."""
_CREDENTIALS_HINT: Final = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
CLOCK_HINT: Final = "let NTP set this machine's clock: AWS refuses signatures that are minutes off"
LOGIN_HINT: Final = "log in again: aws login, or aws sso login, with the profile that is used"

_NO_SUCH_KEY: Final = (
    "the access key is wrong, or the region is not enabled for this account: check"
    " AWS_ACCESS_KEY_ID or AWS_PROFILE, and the region"
)
_WRONG_SIGNATURE: Final = "check the secret key: AWS_SECRET_ACCESS_KEY, or that of AWS_PROFILE"
_WAIT: Final = "AWS wants fewer requests: wait a minute, and try again"
_NOT_ALLOWED: Final = (
    "check the region, and attach the policy in the stack's output DriverPolicyArn: docs/aws.md"
)
_HINTS: Final[Mapping[str, str]] = {
    "ExpiredToken": LOGIN_HINT,
    "InvalidClientTokenId|UnrecognizedClient|InvalidAccessKeyId": _NO_SUCH_KEY,
    "SignatureDoesNotMatch|InvalidSignature": _WRONG_SIGNATURE,
    "Throttl|TooManyRequests|RequestLimitExceeded|SlowDown": _WAIT,
    "service control policy|resource control policy": "ask who manages your AWS organization: its"
    " policies deny it",
    "permissions boundary": "ask who set the permissions boundary of this identity",
    "AccessDenied|UnauthorizedOperation": _NOT_ALLOWED,
}
"""Hints by code and message of an error; the first match wins."""
_SKEWED: Final = (
    *("RequestExpired", "RequestTimeTooSkewed"),
    *("Signature expired", "Signature not yet current"),
)
"""Error codes of S3 and EC2 for a clock that is wrong, and messages of services that use the code
InvalidSignatureException.
"""


@cache
def _loader(path: str | None) -> "Loader":
    from botocore.loaders import create_loader

    return create_loader(path)


def open_session() -> "Session":
    """Return a session that shares its cache of service descriptions with other sessions.

    Reading them takes 90 ms of a processor, nine tenths of the time to create a client.
    """
    from serverless_bench.clients.aws_credentials import AwsSession

    session = AwsSession()
    # An error in a profile is reported when a client is created.
    with suppress(*UNREADABLE):
        session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


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

    from serverless_bench.clients.aws_credentials import forget_credentials

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
        text = f"{error.get('Code', '')}: {_shortened(words) or 'no words'}"
        hint = hint_for(exc) or "check the region, and the permissions of these credentials"
        raise ExecutorError(f"{what}: {text}", hint=hint) from exc
    except CREDENTIALS as exc:
        raise credentials_error(exc) from exc
    except UNREADABLE as exc:
        raise ExecutorError(str(exc), hint=_CREDENTIALS_HINT) from exc
    except (boto.BotoCoreError, ValueError) as exc:
        text, hint = network_problem(exc, "check the network, and AWS_ENDPOINT_URL if it is set")
        raise ExecutorError(f"{what}: {text}", hint=hint) from exc


def _shortened(text: str) -> str:
    """Return a text on one line; a long one keeps its end, which has the reason."""
    line = " ".join(text.split())
    if len(line) <= _MESSAGE_CHARS:
        return line
    half = _MESSAGE_CHARS // 2
    return f"{line[:half]}...{line[-half:]}"


def words_of(error: Exception) -> str:
    """Return the text of an error of botocore, with Lambda's reason for a rejection."""
    text = re.sub(r" \(reached max retries: \d+\)", "", str(error))
    reason = error.response.get("Reason", "") if isinstance(error, boto.ClientError) else ""
    return f"{text} ({reason})" if reason else text


def hint_for(error: Exception) -> str:
    """Return a hint for an error of AWS; empty if it is unknown."""
    if is_skewed(error):
        return CLOCK_HINT
    text = str(error)
    return next((hint for words, hint in _HINTS.items() if re.search(words, text)), "")


def network_problem(error: Exception, hint: str = "") -> tuple[str, str]:
    """Return the text of an error of botocore, and a hint if TLS or a proxy is the cause."""
    if isinstance(error, boto.ProxyConnectionError):
        # The response of the proxy is only in the error of urllib3.
        return f"{error}: {getattr(error.kwargs['error'], 'original_error', '')}", PROXY_HINT
    if not isinstance(error, boto.SSLError):
        return f"{type(error).__name__}: {error}", hint
    bundle = ca_bundle()
    if bundle is None or bundle.is_file():
        return str(error), refusal(str(error)).hint
    return f"AWS_CA_BUNDLE, {bundle}, is not a file", CA_HINT


def credentials_error(error: Exception) -> ExecutorError:
    """Return the error message for one of ``CREDENTIALS``."""
    if isinstance(error, NO_CREDENTIALS):
        return ExecutorError("there are no credentials", hint=_CREDENTIALS_HINT)
    if isinstance(error, boto.MissingDependencyException):
        return ExecutorError(
            "these credentials need 'awscrt', which is not installed",
            hint="pip install awscrt",
        )
    # Other errors quote programs and services that renew credentials.
    is_answer = isinstance(error, boto.ClientError) or is_skewed(error)
    hint = (hint_for(error) if is_answer else "") or LOGIN_HINT
    text = _shortened(words_of(error))
    return ExecutorError(f"the credentials cannot be used: {text}", hint=hint)


def is_skewed(error: Exception | str) -> bool:
    """Return whether AWS rejected a signature because this machine's clock is wrong."""
    return any(words in str(error) for words in _SKEWED)


def error_code(error: BaseException) -> str:
    """Return AWS's code of an error that ``explained`` raised; empty if there is none."""
    cause = error.__cause__
    if not isinstance(cause, boto.ClientError):
        return ""
    return str(cause.response.get("Error", {}).get("Code", ""))
