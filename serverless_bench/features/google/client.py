"""Google Cloud Storage: credentials, hosts that may receive them, and requests that obstore lacks.

Anybody who has a token can use it. Therefore credentials from the environment are sent only to
Google's hosts: any other endpoint (the loopback store) gets an invalid token.
"""

import os
import re
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from serverless_bench.base.errors import AccessDenied, ConnectionLost
from serverless_bench.base.plugins import extra
from serverless_bench.clients.base import Exchange
from serverless_bench.clients.environment import first_set
from serverless_bench.clients.s3_http import NO_HEADERS
from serverless_bench.clients.sigv4 import UNSIGNED_PAYLOAD, Keys, Signer
from serverless_bench.clients.wire import WireClient
from serverless_bench.job.target import Addressing, Target, Transfer

if TYPE_CHECKING:
    from obstore.store import ClientConfig, GCSConfig, GCSStore

NOBODY: Final = "anonymous"
"""Token for stores other than Google's; object_store sends no put without a token."""
_OWN_HOST: Final = re.compile(r"(?:[a-z0-9-]+\.)+googleapis\.com(?::443)?", re.IGNORECASE)
"""Includes Private Service Connect and the restricted names (Cloud Storage, "Request
endpoints")."""
_VARIABLES: Final = (
    *("GOOGLE_BEARER_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_KEY"),
    *("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "SERVICE_ACCOUNT"),
)
"""Variables of object_store; any of them is sufficient."""
_LOGIN: Final = ".config/gcloud/application_default_credentials.json"
_ON_GOOGLE: Final = ("K_SERVICE", "GCE_METADATA_HOST")
"""Variables of Cloud Run and its functions, and of setups with a custom metadata server."""
_PRODUCT: Final = Path("/sys/class/dmi/id/product_name")
_SCOPES: Final = ("https://www.googleapis.com/auth/devstorage.read_write",)
_FILES: Final = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "SERVICE_ACCOUNT")


class GoogleRequests(WireClient):
    """Requests that obstore lacks, sent by the thin client: Google's XML API resembles S3's.

    Parameters
    ----------
    target
        The target with the bucket.
    user_agent
        User agent of the requests.
    timeout_s
        Timeout for connecting, and for a response without progress.

    Raises
    ------
    PluginError
        If google-auth is needed but not installed.
    AccessDenied
        If no credentials exist.
    """

    def __init__(self, target: Target, user_agent: str, timeout_s: float) -> None:
        # obstore always uses path-style addressing.
        target = replace(target, client="", client_option=(), addressing=Addressing.PATH)
        super().__init__(target, Transfer(timeout=timeout_s), called=user_agent)

    def head_bucket(self, exchange: Exchange) -> None:
        """Check that the bucket exists and is accessible."""
        self._send("HeadBucket", "", exchange)

    def create_bucket(self, exchange: Exchange) -> None:
        """Create the bucket; an existing one causes an error with status 409."""
        project = os.environ.get("GOOGLE_CLOUD_PROJECT")
        headers = {"x-goog-project-id": project} if project else NO_HEADERS
        self._send("CreateBucket", "", exchange, headers=headers)

    def delete_version(self, key: str, version: str, exchange: Exchange) -> None:
        """Delete an object if it still has this version; otherwise fail with status 412."""
        self._send("DeleteObject", key, exchange, headers={"x-goog-if-generation-match": version})

    def _open(self) -> None:
        super()._open()
        self._signer = _TokenBearer(self._server.netloc)

    def _find_keys(self) -> Callable[[], Keys | None]:
        if not is_google(self._endpoint_url):
            return lambda: Keys("", "", NOBODY)
        token = find_token()
        return lambda: Keys("", "", token())


class _TokenBearer(Signer):
    """Adds a bearer token in place of a signature.

    google-auth gets a token from any kind of credentials, and renews it.
    """

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
        all_headers = {"host": self._host, "authorization": f"Bearer {keys.token}", **headers}
        return "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())


class Google:
    """Google Cloud Storage, with the credentials of the environment."""

    extra = "gcs"
    signing = "a bearer token, which signs nothing; the body is not hashed"
    credentials_hint = (
        "set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`"
    )

    version_field: Literal["version"] = "version"
    """Metadata field that identifies a version of an object: its generation."""
    requests = GoogleRequests

    def endpoint(self) -> str:
        """Return Google's endpoint."""
        return "https://storage.googleapis.com"

    def has_credentials(self, endpoint_url: str = "") -> bool:
        """Return whether credentials for an endpoint are available, without requesting a token."""
        return (
            (bool(endpoint_url) and not is_google(endpoint_url))
            or any(map(os.environ.get, (*_VARIABLES, *_ON_GOOGLE)))
            or (Path.home() / _LOGIN).exists()
            or _is_google_machine()
        )

    def open_store(
        self, target: Target, endpoint_url: str, client_options: "ClientConfig"
    ) -> "GCSStore":
        """Return obstore's store for a bucket, without retries."""
        from obstore.store import GCSStore

        config: GCSConfig = {"base_url": endpoint_url, "skip_signature": False}
        if not is_google(endpoint_url):
            config["bearer_token"] = NOBODY
        return GCSStore(
            target.bucket,
            config=config,
            client_options=client_options,
            retry_config={"max_retries": 0},
        )


def is_google(url: str) -> bool:
    """Return whether an endpoint is Google's, over https: a token is as sensitive as a password."""
    parts = urlsplit(url)
    return parts.scheme == "https" and _OWN_HOST.fullmatch(parts.netloc) is not None


def _is_google_machine() -> bool:
    """Return whether a metadata server will have credentials, without contacting it.

    This is the check of google-auth: on other machines the request would time out after seconds.
    """
    try:
        return _PRODUCT.read_text(encoding="ascii").startswith("Google")
    except (OSError, ValueError):
        return False


def find_token() -> Callable[[], str]:
    """Return a function that returns the current token, from the credentials that obstore uses.

    Raises
    ------
    PluginError
        If google-auth is needed but not installed.
    AccessDenied
        If no credentials exist, or they cannot be read.
    """
    if token := os.environ.get("GOOGLE_BEARER_TOKEN"):
        return lambda: token
    with extra(Google.extra, "Google Cloud Storage"):
        from google.auth import exceptions
        from google.auth.transport.requests import Request
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


def _load() -> Any:
    import json
    import logging

    import google.auth
    from google.oauth2 import service_account

    credentials_class: Any = service_account.Credentials
    if path := first_set(_FILES):
        return credentials_class.from_service_account_file(path, scopes=_SCOPES)
    if text := os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY"):
        return credentials_class.from_service_account_info(json.loads(text), scopes=_SCOPES)
    # It would warn that no project is set, but a bucket needs none.
    logging.getLogger("google.auth._default").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return google.auth.default(scopes=_SCOPES)[0]


CLOUD: Final = Google()
