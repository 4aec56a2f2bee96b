"""Errors of a bucket's requests as a line for the user: what is wrong, and what helps."""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from serverless_bench.base.clock import http_date_s, wall_ns
from serverless_bench.base.errors import (
    AccessDenied,
    BadResponse,
    CertificateRefused,
    NotFound,
    OperationError,
    StoreError,
    WrongRegion,
    last_failure,
)
from serverless_bench.base.units import NS_PER_S, format_seconds
from serverless_bench.clients.base import is_virtual
from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.clients.environment import PROXY_HINT, certificate_error
from serverless_bench.job.endpoint import is_aws, is_here
from serverless_bench.job.target import Target

_MOST_SKEW_S: Final = 900.0
"""S3 rejects signatures with a larger clock skew (Amazon S3 API reference, "Error responses")."""
_HINTS: Final = (
    (r"SecondLevelDomain|virtual.?host|path.?style", "`addressing` virtual"),
    (r"InvalidBucketName", "check `bucket`: lower case letters, digits and hyphens"),
    (r"Malformed|region|scope|Location.?Constraint", "name the store's region: `region`"),
)
"""Hints by words of a store; the first match wins."""


def skew(date: str | None) -> str:
    """Return by how much this machine's clock is too far from a ``Date`` header; empty if not.

    Stores without an error of their own for it answer that the signature does not match.
    """
    date_s = http_date_s(date)
    off_s = 0.0 if date_s is None else wall_ns() / NS_PER_S - date_s
    if abs(off_s) <= _MOST_SKEW_S:
        return ""
    where = "ahead of" if off_s > 0 else "behind"
    return f"RequestTimeTooSkewed: it is {format_seconds(abs(off_s))} {where} the store's"


def hint_for(words: str) -> str:
    """Return a hint for the words in which a store refused a request; empty if they are unknown."""
    return next((hint for word, hint in _HINTS if re.search(word, words, re.IGNORECASE)), "")


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turn errors of a bucket's requests into a line for the user."""
    where = f"bucket {target.bucket_name!r}"
    try:
        yield
    except NotFound as exc:
        url = target.endpoint_url
        is_own = bool(url) and target.protocol not in CLOUDS and not is_aws(url)
        raise missing(
            where, "sbench write --create-bucket creates it" if is_own else "create it"
        ) from exc
    except AccessDenied as exc:
        if target.protocol in CLOUDS:
            raise _no_access(where, exc, CLOUDS.load(target.protocol).credentials_hint) from exc
        if exc.status is None:
            raise credentials(exc.__cause__, target.endpoint_url) from exc
        raise refused(where, str(exc)) from exc
    except WrongRegion as exc:
        hint = "name where the bucket is: `endpoint_url`, `region`" + f" {exc.region}" * bool(
            exc.region
        )
        raise StoreError(f"{where}: {exc}", hint=hint) from exc
    except OperationError as exc:
        if exc.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise unreachable(target, f"the proxy {exc}", is_tls=False, hint=PROXY_HINT) from exc
        if exc.status is not None:
            hint = exc.hint or hint_for(str(exc))
            # What is wrong with a bad response is a sentence of its own.
            said = f"{exc}" if isinstance(exc, BadResponse) else f"the store answered {exc}"
            raise StoreError(f"{where}: {said}", hint=hint) from exc
        is_tls = isinstance(exc.__cause__, ssl.SSLError) or "[SSL" in str(exc)
        raise unreachable(target, last_failure(exc), is_tls=is_tls) from exc


def missing(where: str, remedy: str = "create it") -> StoreError:
    """Return the error for a bucket that does not exist."""
    return StoreError(f"{where} does not exist", hint=f"{remedy}, or name another `bucket`")


def refused(where: str, why: str) -> StoreError:
    """Return the error for a bucket to which access is denied."""
    from serverless_bench.clients.aws_errors import CLOCK_HINT, LOGIN_HINT, is_skewed

    if is_skewed(why):
        return StoreError(f"{where} refuses this machine's clock ({why})", hint=CLOCK_HINT)
    if hint := hint_for(why):
        return StoreError(f"{where}: the store answered {why}", hint=hint)
    hint = "check AWS_ACCESS_KEY_ID or AWS_PROFILE, and their permissions"
    if "ExpiredToken" in why:
        hint = LOGIN_HINT
    # The answer to a HEAD has no words.
    if "AccessDenied" in why or why == "HTTP 403":
        hint = f"{hint}: s3:ListBucket first"
    return StoreError(f"{where} refuses these credentials ({why})", hint=hint)


def _no_access(where: str, exc: AccessDenied, hint: str) -> StoreError:
    """Return the error for a bucket of another cloud to which access is denied."""
    if exc.status is not None:
        return StoreError(f"{where} refuses these credentials ({exc})", hint=hint)
    return StoreError(f"{where}: {exc}", hint="" if hint in str(exc) else hint)


def credentials(cause: BaseException | None, endpoint_url: str = "") -> StoreError:
    """Return the error for missing credentials, with botocore's reason if there is one."""
    if cause is None:
        hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        if is_here(urlsplit(endpoint_url).hostname or ""):
            hint += "; sbench store status --env prints those of the embedded store"
        return StoreError("no credentials found", hint=hint)
    # botocore is imported already if it is the cause.
    from serverless_bench.clients.aws_errors import CREDENTIALS, credentials_error

    if isinstance(cause, CREDENTIALS):
        error = credentials_error(cause)
        return StoreError(str(error), hint=error.hint)
    if "parse" in str(cause):
        hint = "save it as UTF-8 without a byte order mark; `aws configure list` reads it, too"
        return StoreError(f"the AWS configuration cannot be read: {cause}", hint=hint)
    # The profile does not exist or contains no credentials.
    hint = "check AWS_PROFILE and its section in ~/.aws"
    return StoreError(f"no credentials found: {cause}", hint=hint)


def unreachable(
    target: Target, why: BaseException | str, *, is_tls: bool, hint: str = ""
) -> StoreError:
    """Return the error for a store that does not respond; ``hint`` comes from the cause."""
    host, text = urlsplit(target.endpoint_url).netloc or "AWS", str(why)
    hint = hint or getattr(why, "hint", "")
    in_name = is_virtual(target.addressing, host, target.bucket) and host != "AWS"
    name = f"{target.bucket}.{host}" if in_name else host
    refused = why if isinstance(why, CertificateRefused) else certificate_error(text)
    if refused is not None:
        return StoreError(f"the certificate of {name} {refused.what}", hint=refused.hint)
    if is_tls:
        hint = f"`endpoint_url` http://{host} if it speaks http"
        return StoreError(f"{host} does not speak https", hint=hint)
    if "gaierror" in text or "NameResolution" in text:
        hint = hint or ("`addressing` path" if in_name else "check the name in `endpoint_url`")
        return StoreError(f"{name} does not resolve: {text}", hint=hint)
    hint = hint or "check `endpoint_url`, and that the store runs"
    if in_name:
        hint = f"{hint}; `addressing` path leaves the bucket out of the host name"
    return StoreError(f"{name} does not answer: {text}", hint=hint)
