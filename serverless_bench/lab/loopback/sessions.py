"""Directory buckets: their sessions, and what they refuse that other buckets serve.

Amazon S3 API reference, "CreateSession", and user guide, "How is S3 Express One Zone different?"
and "Authorizing Zonal endpoint API operations with CreateSession".
"""

import re
import secrets
import threading
from dataclasses import dataclass
from typing import Final

from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.lab.loopback.s3 import S3Error, S3Request
from serverless_bench.units import NS_PER_S

_NO_SESSION: Final = frozenset({"create_bucket", "create_session", "delete_bucket", "head_bucket"})
"""Operations that are signed with one's own keys."""
_CREDENTIAL: Final = re.compile(r"Credential=([^/,\s]+)/[^/]+/[^/]+/s3express/aws4_request")
_LEFT_NS: Final = 60 * NS_PER_S
"""For so long the store knows that a session is over, and not only unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one CreateSession gave."""

    bucket: str
    access_key: str
    secret_key: str
    token: str
    end_ns: int
    """On the wall clock."""


class SessionTable:
    """The sessions of one server; threads may share it.

    Parameters
    ----------
    lifetime_s
        How long a session lasts; None for a server whose buckets are all ordinary ones.
    """

    def __init__(self, lifetime_s: float | None) -> None:
        self._lifetime_s = lifetime_s
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def governs(self, bucket: str) -> bool:
        """Tell whether a bucket is a directory bucket here."""
        return self._lifetime_s is not None and is_directory_bucket(bucket)

    def create(self, bucket: str, now_ns: int) -> Session:
        """Return a new session.

        Parameters
        ----------
        bucket
            Empty for a client that puts it into the host name, whatever the style of its other
            requests: its session is good for all directory buckets, as hosts are not looked at.
        now_ns
            On the wall clock.

        Raises
        ------
        S3Error
            If the bucket is no directory bucket.
        """
        if self._lifetime_s is None or not (is_directory_bucket(bucket) or not bucket):
            raise S3Error(501, "NotImplemented", "this is no directory bucket")
        made = Session(
            bucket=bucket,
            access_key=f"ASIA{secrets.token_hex(8).upper()}",
            secret_key=secrets.token_hex(20),
            token=secrets.token_hex(64),
            end_ns=now_ns + round(self._lifetime_s * NS_PER_S),
        )
        with self._lock:
            known = self._sessions.items()
            self._sessions = {t: s for t, s in known if s.end_ns + _LEFT_NS > now_ns}
            self._sessions[made.token] = made
        return made

    def check(self, request: S3Request, operation: str, now_ns: int) -> None:
        """Refuse what a directory bucket does not serve.

        Raises
        ------
        S3Error
            If a session is missing, over, or another bucket's, or the request is none for such a
            bucket.
        """
        if not self.governs(request.bucket):
            return
        found = _CREDENTIAL.search(request.headers.get("authorization", ""))
        if found is None:
            raise S3Error(403, "AccessDenied", "sign for the service s3express")
        token = request.headers.get("x-amz-s3session-token")
        if token is not None or operation not in _NO_SESSION:
            self._check_session(request.bucket, token or "", found[1], now_ns)
        _check_served(request, operation)

    def _check_session(self, bucket: str, token: str, access_key: str, now_ns: int) -> None:
        session = self._sessions.get(token)
        if session is None or session.bucket not in {"", bucket}:
            raise S3Error(403, "AccessDenied", "this bucket has no such session")
        if session.end_ns <= now_ns:
            raise S3Error(400, "ExpiredToken", "The provided token has expired.")
        if session.access_key != access_key:
            raise S3Error(403, "InvalidAccessKeyId", "these are not the keys of the session")


def _check_served(request: S3Request, operation: str) -> None:
    query, prefix = request.query, request.query.get("prefix", "")
    if operation == "get_location" or (
        operation == "list_objects" and query.get("list-type") != "2"
    ):
        raise S3Error(501, "NotImplemented", "a directory bucket does not do this")
    if operation not in {"list_objects", "list_uploads"}:
        return
    if prefix and not prefix.endswith("/"):
        raise S3Error(400, "InvalidRequest", "a prefix ends in a slash here")
    if query.get("start-after"):
        raise S3Error(400, "InvalidRequest", "there is no order in which to start after a key")
