"""What obstore does not do on Google Cloud Storage, by single requests of the thin client.

Google's XML API has S3's requests. A token stands where S3 has a signature; google-auth has it
from whatever credentials there are, and renews it.
"""

import json
import logging
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.clouds.google import NOBODY, is_google
from serverless_bench.clients.listings import OpenUpload, read_uploads, uploads_query
from serverless_bench.clients.s3_http import NO_HEADERS
from serverless_bench.clients.sigv4 import UNSIGNED_PAYLOAD, Keys, Signer
from serverless_bench.clients.wire import WireClient
from serverless_bench.errors import AccessDenied, ConnectionLost
from serverless_bench.job.target import Addressing, Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.plugins import extra

_SCOPES: Final = ("https://www.googleapis.com/auth/devstorage.read_write",)
_FILES: Final = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "SERVICE_ACCOUNT")


class GoogleRequests(WireClient):
    """See ``clouds.CloudRequests``.

    Parameters
    ----------
    target
        Has the bucket.
    user_agent
        What to call ourselves.
    timeout_s
        For the connection, and for a response in which nothing moves.

    Raises
    ------
    PluginError
        If google-auth is not installed, and needed.
    AccessDenied
        If there are no credentials.
    """

    def __init__(self, target: Target, user_agent: str, timeout_s: float) -> None:
        # obstore has no other way to name the bucket.
        target = replace(target, client="", client_option=(), addressing=Addressing.PATH)
        super().__init__(target, Transfer(timeout=timeout_s), called=user_agent)

    def head_bucket(self, exchange: Exchange) -> None:
        self._send("HeadBucket", "", exchange)

    def create_bucket(self, exchange: Exchange) -> None:
        project = os.environ.get("GOOGLE_CLOUD_PROJECT")
        headers = {"x-goog-project-id": project} if project else NO_HEADERS
        self._send("CreateBucket", "", exchange, headers=headers)

    def delete_version(self, key: str, version: str, exchange: Exchange) -> None:
        condition = {"x-goog-if-generation-match": version}
        self._send("DeleteObject", key, exchange, headers=condition)

    def list_uploads(
        self, prefix: str, marker: OpenUpload | None, exchange: Exchange
    ) -> tuple[list[OpenUpload], OpenUpload | None]:
        query = uploads_query(prefix, marker)
        response = self._send("ListMultipartUploads", "", exchange, query=query)
        return read_uploads(response.text, prefix)

    def _open(self) -> None:
        super()._open()
        self._signer = _TokenBearer(self._server.netloc)

    def _find_keys(self) -> Callable[[], Keys | None]:
        if not is_google(self._endpoint_url):
            return lambda: Keys("", "", NOBODY)
        token = find_token()
        return lambda: Keys("", "", token())


class _TokenBearer(Signer):
    """Says whose a request is, in place of a signature."""

    def __init__(self, host: str) -> None:
        super().__init__("", host)
        self._host = host

    def sign(
        self,
        keys: Keys,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str] = NO_HEADERS,
        payload: str = UNSIGNED_PAYLOAD,
    ) -> str:
        del method, path, query, payload
        all_headers = {"host": self._host, "authorization": f"Bearer {keys.token}", **headers}
        return "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())


def find_token() -> Callable[[], str]:
    """Return what returns the token of the moment, from the credentials that obstore takes.

    Raises
    ------
    PluginError
        If google-auth is not installed, and needed.
    AccessDenied
        If there are no credentials, or they cannot be read.
    """
    if token := os.environ.get("GOOGLE_BEARER_TOKEN"):
        return lambda: token
    with extra("gcs", "Google Cloud Storage"):
        from google.auth import exceptions  # noqa: PLC0415 - 0.2 s of a processor
        from google.auth.transport.requests import Request  # noqa: PLC0415
    try:
        credentials = _load()
    except (exceptions.GoogleAuthError, OSError, ValueError) as exc:
        raise AccessDenied(f"no credentials for Google Cloud Storage: {exc}") from exc
    request, renewing = Request(), threading.Lock()

    def renewed() -> str:
        with renewing:
            try:
                if not credentials.valid:
                    credentials.refresh(request)
            except exceptions.TransportError as exc:
                raise ConnectionLost(f"no token: {exc}") from exc
            except exceptions.GoogleAuthError as exc:
                raise AccessDenied(f"no token: {exc}") from exc
            return str(credentials.token)

    return renewed


def _load() -> Any:  # noqa: ANN401 - google-auth's credentials have no types
    import google.auth  # noqa: PLC0415 - as in find_token
    from google.oauth2 import service_account  # noqa: PLC0415

    made: Any = service_account.Credentials
    if path := next(filter(None, map(os.environ.get, _FILES)), None):
        return made.from_service_account_file(path, scopes=_SCOPES)
    if text := os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY"):
        return made.from_service_account_info(json.loads(text), scopes=_SCOPES)
    # It would warn that no project is named: a bucket needs none.
    logging.getLogger("google.auth._default").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return google.auth.default(scopes=_SCOPES)[0]
