"""Errors of botocore as a line for the user, with a hint.

A module that needs them without a client imports this one late: botocore is slow to import.
"""

import re
from collections.abc import Mapping
from typing import Final

from botocore import exceptions as boto

from serverless_bench.base.errors import ExecutorError
from serverless_bench.clients.environment import CA_HINT, PROXY_HINT, ca_bundle, refusal

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
CREDENTIALS_HINT: Final = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
CLOCK_HINT: Final = "let NTP set this machine's clock: AWS refuses signatures that are minutes off"
LOGIN_HINT: Final = "log in again: aws login, or aws sso login, with the profile that is used"

_NO_SUCH_KEY: Final = (
    "the access key is wrong, or the region is not enabled for this account: check"
    " AWS_ACCESS_KEY_ID or AWS_PROFILE, and the region"
)
_WRONG_SIGNATURE: Final = "check the secret key: AWS_SECRET_ACCESS_KEY, or that of AWS_PROFILE"
_WAIT: Final = "AWS wants fewer requests: wait a minute, and try again"
_NOT_ALLOWED: Final = (
    "check the region, and attach the policy in the stack's output DriverPolicyArn;"
    ' see "AWS" in the documentation'
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


def shortened(text: str) -> str:
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
        return ExecutorError("no credentials found", hint=CREDENTIALS_HINT)
    if isinstance(error, boto.MissingDependencyException):
        return ExecutorError(
            "these credentials need 'awscrt', which is not installed",
            hint="pip install awscrt",
        )
    # Other errors quote programs and services that renew credentials.
    is_answer = isinstance(error, boto.ClientError) or is_skewed(error)
    hint = (hint_for(error) if is_answer else "") or LOGIN_HINT
    return ExecutorError(f"the credentials cannot be used: {shortened(words_of(error))}", hint=hint)


def is_skewed(error: Exception | str) -> bool:
    """Return whether AWS rejected a signature because this machine's clock is wrong."""
    return any(words in str(error) for words in _SKEWED)
