"""Sessions of directory buckets, and the requests that only other buckets serve.

Amazon S3 API reference, "CreateSession", and user guide, "How is S3 Express One Zone different?"
and "Authorizing Zonal endpoint API operations with CreateSession".
"""

import re
import secrets
import threading
from dataclasses import dataclass
from typing import Final

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.loopback.s3 import S3Error, S3Request
from serverless_bench.job.endpoint import is_directory_bucket

_NO_SESSION: Final = frozenset({"create_bucket", "create_session", "delete_bucket", "head_bucket"})
"""Operations that are signed with the caller's long-term keys."""
_CREDENTIAL: Final = re.compile(r"Credential=([^/,\s]+)/[^/]+/[^/]+/s3express/aws4_request")
_REMEMBERED_NS: Final = 60 * NS_PER_S
"""Time after the end of a session for which it is reported as expired and not as unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Credentials returned by a CreateSession."""

    bucket: str
    access_key: str
    secret_key: str
    token: str
    end_ns: int
    """Expiry on the wall clock."""


class SessionTable:
    """Sessions of a server, safe to share between threads.

    Parameters
    ----------
    lifetime_s
        Lifetime of a session; None for a server without directory buckets.
    """

    def __init__(self, lifetime_s: float | None) -> None:
        self._lifetime_s = lifetime_s
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def governs(self, bucket: str) -> bool:
        """Return whether a bucket is a directory bucket on this server."""
        return self._lifetime_s is not None and is_directory_bucket(bucket)

    def create(self, bucket: str, now_ns: int) -> Session:
        """Return a new session.

        Parameters
        ----------
        bucket
            Empty if the client names the bucket in the host, regardless of the style of its other
            requests. Such a session is good for all directory buckets, as the server ignores hosts.
        now_ns
            Present time on the wall clock.

        Raises
        ------
        S3Error
            If the bucket is not a directory bucket.
        """
        if self._lifetime_s is None or not (is_directory_bucket(bucket) or not bucket):
            raise S3Error(501, "NotImplemented", "this is not a directory bucket")
        session = Session(
            bucket=bucket,
            access_key=f"ASIA{secrets.token_hex(8).upper()}",
            secret_key=secrets.token_hex(20),
            token=secrets.token_hex(64),
            end_ns=now_ns + round(self._lifetime_s * NS_PER_S),
        )
        with self._lock:
            sessions = self._sessions.items()
            self._sessions = {t: s for t, s in sessions if s.end_ns + _REMEMBERED_NS > now_ns}
            self._sessions[session.token] = session
        return session

    def check(self, request: S3Request, operation: str, now_ns: int) -> None:
        """Check that a directory bucket serves a request.

        Raises
        ------
        S3Error
            If the session is missing, expired or for another bucket, or a directory bucket does not
            support the request.
        """
        if not self.governs(request.bucket):
            return
        credential = _CREDENTIAL.search(request.headers.get("authorization", ""))
        if credential is None:
            raise S3Error(403, "AccessDenied", "the signature has to be for the service s3express")
        token = request.headers.get("x-amz-s3session-token")
        if token is not None or operation not in _NO_SESSION:
            self._check_session(request.bucket, token or "", credential[1], now_ns)
        _check_served(request, operation)

    def _check_session(self, bucket: str, token: str, access_key: str, now_ns: int) -> None:
        session = self._sessions.get(token)
        if session is None or session.bucket not in {"", bucket}:
            raise S3Error(403, "AccessDenied", "this bucket has no session with this token")
        if session.end_ns <= now_ns:
            raise S3Error(400, "ExpiredToken", "The provided token has expired.")
        if session.access_key != access_key:
            raise S3Error(
                403, "InvalidAccessKeyId", "the access key does not belong to this session"
            )


def _check_served(request: S3Request, operation: str) -> None:
    query, prefix = request.query, request.query.get("prefix", "")
    if operation == "get_location" or (
        operation == "list_objects" and query.get("list-type") != "2"
    ):
        raise S3Error(501, "NotImplemented", "a directory bucket does not support this")
    if operation not in {"list_objects", "list_uploads"}:
        return
    if prefix and not prefix.endswith("/"):
        raise S3Error(400, "InvalidRequest", "a prefix has to end in a slash in a directory bucket")
    if query.get("start-after"):
        raise S3Error(
            400,
            "InvalidRequest",
            "start-after needs an order of keys, and a directory bucket has none",
        )
