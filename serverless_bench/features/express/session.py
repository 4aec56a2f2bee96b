"""Sessions for a directory bucket: temporary keys issued by S3.

See Amazon S3 API reference, "CreateSession": requests for objects are signed with the keys of a
session, which last five minutes, under the service name ``s3express``; requests that create a
session or copy an object are signed with the original keys.
"""

import threading
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, NamedTuple

from serverless_bench.base.clock import http_date_s, iso_date_s, wall_ns
from serverless_bench.base.errors import BadResponse, OperationError, ServerFault
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Exchange
from serverless_bench.clients.s3_http import S3Response, element
from serverless_bench.clients.sigv4 import Keys, Signer

_TOKEN_HEADER: Final = "x-amz-s3session-token"  # noqa: S105 - the name of a header
_ENDED: Final = frozenset({"ExpiredToken", "InvalidToken"})
_LASTS_S: Final = 300.0
"""Default lifetime, that of AWS's sessions, if the response does not contain it."""
_EARLY: Final = 0.25
_LEAST_EARLY_S: Final = 1.0
"""A session is renewed when this fraction of its lifetime remains, or this many seconds: the
expiration has a resolution of a second."""


class _SessionKeys(NamedTuple):
    keys: Keys
    renew_ns: int
    """Wall-clock time of the renewal: the monotonic clock may stop while a function is frozen."""
    end_ns: int


class Sessions:
    """The current keys for a directory bucket; threads may share it.

    While a thread renews a session, other threads continue with the old keys until they expire.

    Parameters
    ----------
    region, host
        Location of the bucket.
    create
        Requests a session from the store.
    """

    service: ClassVar = "s3express"
    """The service that requests are signed for, with a session or not."""
    without: ClassVar = frozenset({"CreateSession", "CopyObject", "CreateBucket", "HeadBucket"})
    """Operations that need no session ("Authorizing Zonal endpoint API operations")."""

    def __init__(self, region: str, host: str, create: Callable[[Exchange], S3Response]) -> None:
        self.signer = Signer(region, host, service=self.service, token_header=_TOKEN_HEADER)
        """Signs with the keys."""
        self._create = create
        self._session = _SessionKeys(Keys("", ""), 0, 0)
        self._renewing = threading.Lock()

    def keys(self, exchange: Exchange) -> Keys:
        """Return keys that are valid for a request that starts now.

        Raises
        ------
        OperationError
            If the store returns no session.
        """
        session, now_ns = self._session, wall_ns()
        if now_ns < session.renew_ns:
            return session.keys
        # While another thread renews it, wait only if the old session has expired.
        if not self._renewing.acquire(blocking=now_ns >= session.end_ns):
            return session.keys
        try:
            if wall_ns() >= self._session.renew_ns:
                requested_ns = wall_ns()
                self._session = _session(self._create(Aside(exchange)), requested_ns)
            return self._session.keys
        finally:
            self._renewing.release()

    def judge(
        self, operation: str, text: bytes, keys: Keys, error: OperationError
    ) -> OperationError:
        """Return the error of a request; a retryable one if its session had expired.

        This happens after a clock was adjusted, or if a store ends sessions early.

        Parameters
        ----------
        operation, text
            The operation, and the body of the response.
        keys
            Keys that signed the request.
        error
            Error for the response.
        """
        if operation in self.without or element(text, "Code") not in _ENDED:
            return error
        if self._session.keys == keys:
            self._session = _SessionKeys(keys, 0, 0)
        return ServerFault(f"the session has expired ({error})", status=error.status)


class Aside:
    """The exchange of a session request; it reports only the wait to the exchange of the operation.

    Parameters
    ----------
    exchange
        Exchange of the operation.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def moved(self, count: int) -> None:
        """Report the wait to the exchange of the operation."""
        del count
        self._exchange.moved(0)

    def sent(self, *_: object, **__: object) -> None:
        """Ignore this event and all below."""

    connected = sending = acknowledged = answered = first_byte = sent


def _session(response: S3Response, requested_ns: int) -> _SessionKeys:
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    access_key, secret_key, token = (element(response.text, name) for name in names)
    if not (access_key and secret_key and token):
        raise BadResponse("the store sent no session keys", status=response.status)
    lasts_s = _lifetime_s(element(response.text, "Expiration"), response.headers)
    early_s = max(lasts_s * _EARLY, _LEAST_EARLY_S)
    return _SessionKeys(
        Keys(access_key, secret_key, token),
        renew_ns=requested_ns + round((lasts_s - early_s) * NS_PER_S),
        end_ns=requested_ns + round((lasts_s - early_s / 2) * NS_PER_S),
    )


def _lifetime_s(expiration: str, headers: Mapping[str, str]) -> float:
    """Return the lifetime of a session, by the clock of the store."""
    date_s, end_s = http_date_s(headers.get("date")), iso_date_s(expiration)
    return _LASTS_S if date_s is None or end_s is None else end_s - date_s
