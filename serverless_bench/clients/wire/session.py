"""Sessions with a directory bucket: keys that S3 gives for some minutes.

Amazon S3 API reference, "CreateSession": requests on objects are signed with the keys of a
session, which last five minutes, by the service name ``s3express``; what asks for a session, or
copies an object, is signed with one's own keys.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.s3_http import S3Response, element
from serverless_bench.clients.sigv4 import Keys, Signer
from serverless_bench.clock import http_date_s, iso_date_s, wall_ns
from serverless_bench.errors import BadResponse, OperationError, ServerFault
from serverless_bench.units import NS_PER_S

SERVICE: Final = "s3express"
CREATE_SESSION: Final = "CreateSession"
OWN_KEYS: Final = frozenset({CREATE_SESSION, "CopyObject", "CreateBucket", "HeadBucket"})
"""Operations that no session is for ("Authorizing Zonal endpoint API operations")."""
_TOKEN_HEADER: Final = "x-amz-s3session-token"  # noqa: S105 - the name of a header
_ENDED: Final = frozenset({"ExpiredToken", "InvalidToken"})
_LASTS_S: Final = 300.0
"""If the answer does not say: AWS's sessions."""
_EARLY: Final = 0.25
_LEAST_EARLY_S: Final = 1.0
"""A session is renewed when this share of its time is left, or so many seconds: its end is
told in whole ones."""


class _SessionKeys(NamedTuple):
    keys: Keys
    renew_ns: int
    """When to ask for another one, by the wall clock: a frozen function's other clock may stop."""
    end_ns: int


class Sessions:
    """The keys of the moment for one directory bucket; threads may share it.

    While one thread renews a session, the others go on with the old one as long as it lasts.

    Parameters
    ----------
    region, host
        Where the bucket is.
    create
        Asks the store for a session.
    """

    def __init__(self, region: str, host: str, create: Callable[[Exchange], S3Response]) -> None:
        self.signer = Signer(region, host, service=SERVICE, token_header=_TOKEN_HEADER)
        """Signs with the keys."""
        self._create = create
        self._session = _SessionKeys(Keys("", ""), 0, 0)
        self._renewing = threading.Lock()

    def keys(self, exchange: Exchange) -> Keys:
        """Return keys that are good for a request that begins now.

        Raises
        ------
        OperationError
            If the store gives no session.
        """
        session, now_ns = self._session, wall_ns()
        if now_ns < session.renew_ns:
            return session.keys
        # Who finds somebody renewing it waits only if there is nothing to go on with.
        if not self._renewing.acquire(blocking=now_ns >= session.end_ns):
            return session.keys
        try:
            if wall_ns() >= self._session.renew_ns:
                asked_ns = wall_ns()
                self._session = _session(self._create(Aside(exchange)), asked_ns)
            return self._session.keys
        finally:
            self._renewing.release()

    def judge(
        self, operation: str, text: bytes, keys: Keys, error: OperationError
    ) -> OperationError:
        """Return the error of a request; if its session had ended, one that is worth a retry.

        So it is after a clock was set, or where a store ends sessions early.

        Parameters
        ----------
        operation, text
            What was asked for, and the body of the response.
        keys
            What the request was signed with.
        error
            What the response stands for.
        """
        if operation in OWN_KEYS or element(text, "Code") not in _ENDED:
            return error
        if self._session.keys == keys:
            self._session = _SessionKeys(keys, 0, 0)
        return ServerFault(f"the session has ended ({error})", status=error.status)


class Aside:
    """The exchange of a request for a session, of which the operation's own shows only the wait.

    Parameters
    ----------
    exchange
        Of the operation.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def moved(self, count: int) -> None:
        del count
        self._exchange.moved(0)

    def sent(self, *_: object, **__: object) -> None:
        """Say nothing of this, nor of all that follows."""

    connected = sending = acknowledged = answered = first_byte = sent


def _session(response: S3Response, asked_ns: int) -> _SessionKeys:
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    access_key, secret_key, token = (element(response.text, name) for name in names)
    if not (access_key and secret_key and token):
        raise BadResponse("the store gave no session", status=response.status)
    lasts_s = _lifetime_s(element(response.text, "Expiration"), response.headers)
    early_s = max(lasts_s * _EARLY, _LEAST_EARLY_S)
    return _SessionKeys(
        Keys(access_key, secret_key, token),
        renew_ns=asked_ns + round((lasts_s - early_s) * NS_PER_S),
        end_ns=asked_ns + round((lasts_s - early_s / 2) * NS_PER_S),
    )


def _lifetime_s(expiration: str, headers: Mapping[str, str]) -> float:
    """Return how long a session lasts, by the store's own clock."""
    date_s, end_s = http_date_s(headers.get("date")), iso_date_s(expiration)
    return _LASTS_S if date_s is None or end_s is None else end_s - date_s
