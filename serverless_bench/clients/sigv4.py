"""AWS Signature Version 4 for S3.

See AWS, "Create a signed AWS API request": for S3 a path is encoded once and not normalized.
botocore does the same in ten times the time, half of the cost of a small object, because it builds
a request object first; tests compare both.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

from serverless_bench.base.clock import utc_stamp, wall_ns
from serverless_bench.base.units import NS_PER_S

UNSIGNED_PAYLOAD: Final = "UNSIGNED-PAYLOAD"
"""Placeholder for the hash of the body (Amazon S3 API reference, "Authenticating requests")."""
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_NO_HEADERS: Final[Mapping[str, str]] = {}


class Keys(NamedTuple):
    """Credentials for signing at a point in time."""

    access_key: str
    secret_key: str
    token: str | None = None
    """Session token of temporary credentials."""

    def __repr__(self) -> str:
        return "Keys(...)"


class _Headers(NamedTuple):
    """Headers of a request in the three forms needed for signing and sending."""

    canonical: str
    """Sorted names and values, one per line, then after an empty line the names and the payload
    hash: the end of a canonical request."""
    names: str
    sent: str
    """Header lines of the request."""


class _Second(NamedTuple):
    """Common parts of all signatures within one second."""

    second: int
    keys: Keys
    signing_key: bytes
    to_sign: str
    """Start of a string to sign."""
    credential: str
    """Start of the value of the ``authorization`` header."""
    stamp: str
    plain: _Headers
    """Headers of a request without additional headers."""


class Signer:
    """Signs requests; threads may share it.

    Parameters
    ----------
    region
        Region of the bucket.
    host
        Host of the store, with its port.
    service
        Service name in the signature.
    token_header
        Header for the token of temporary credentials.
    """

    def __init__(
        self,
        region: str,
        host: str,
        *,
        service: str = "s3",
        token_header: str = "x-amz-security-token",  # noqa: S107 - the name of a header
    ) -> None:
        self.region = region
        self._host = host
        self._service = service
        self._token_header = token_header
        nothing = _Headers("", "", "")
        self._latest = _Second(-1, Keys("", ""), b"", "", "", "", nothing)

    def sign(
        self,
        keys: Keys,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str] = _NO_HEADERS,
        payload: str = UNSIGNED_PAYLOAD,
    ) -> str:
        """Return the header lines with the host, ``headers`` and the signature.

        Parameters
        ----------
        keys
            Credentials of the request.
        method, path, query
            Parts of the request, encoded as they are sent.
        headers
            Additional headers, with names in lower case; all are signed.
        payload
            SHA-256 of the body in hexadecimal, or a placeholder.
        """
        now = self._latest
        second = wall_ns() // NS_PER_S
        if now.second != second or now.keys != keys:
            # Replaced atomically: another thread sees either the old or the new value.
            self._latest = now = self._at(second, keys)
        signed_headers = now.plain
        if headers or payload != UNSIGNED_PAYLOAD:
            signed_headers = self._headers(keys, now.stamp, headers, payload)
        if "&" in query:
            query = _sorted(query)
        request = f"{method}\n{path}\n{query}\n{signed_headers.canonical}"
        hashed = hashlib.sha256(request.encode()).hexdigest()
        text = f"{now.to_sign}{hashed}".encode()
        signature = hmac.digest(now.signing_key, text, "sha256").hex()
        return (
            f"{signed_headers.sent}authorization: {now.credential}, "
            f"SignedHeaders={signed_headers.names}, "
            f"Signature={signature}\r\n"
        )

    def _at(self, second: int, keys: Keys) -> _Second:
        stamp = utc_stamp(second * NS_PER_S)
        scope = f"{stamp[:8]}/{self.region}/{self._service}/aws4_request"
        key = f"AWS4{keys.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        return _Second(
            second,
            keys,
            key,
            f"{_ALGORITHM}\n{stamp}\n{scope}\n",
            f"{_ALGORITHM} Credential={keys.access_key}/{scope}",
            stamp,
            self._headers(keys, stamp, _NO_HEADERS, UNSIGNED_PAYLOAD),
        )

    def _headers(
        self, keys: Keys, stamp: str, headers: Mapping[str, str], payload: str
    ) -> _Headers:
        signed = {
            "host": self._host,
            **headers,
            "x-amz-content-sha256": payload,
            "x-amz-date": stamp,
        }
        if keys.token:
            signed[self._token_header] = keys.token
        names = ";".join(sorted(signed))
        lines = [f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed)]
        sent = [f"{name}: {value}\r\n" for name, value in signed.items()]
        return _Headers(f"{''.join(lines)}\n{names}\n{payload}", names, "".join(sent))


def _sorted(query: str) -> str:
    """Return the parameters of a query sorted by name, then by value."""
    pairs = sorted(pair.partition("=") for pair in query.split("&"))
    return "&".join(map("".join, pairs))
