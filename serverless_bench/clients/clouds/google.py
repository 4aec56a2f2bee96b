"""Google Cloud Storage: its credentials as obstore finds them, and to whom they may go.

A token is good for whoever has it. So credentials of the environment go to Google's own hosts and
nowhere else: any other endpoint (the loopback store) gets a token that is nobody's.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from serverless_bench.job.target import Target

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, GCSConfig, GCSStore

    from serverless_bench.clients.clouds.google_requests import GoogleRequests

NOBODY: Final = "anonymous"
"""The token for stores that are not Google's; object_store signs no put without one."""
_OWN_HOST: Final = re.compile(r"(?:[a-z0-9-]+\.)+googleapis\.com(?::443)?", re.IGNORECASE)
"""Also Private Service Connect's and the restricted names (Cloud Storage, "Request endpoints")."""
_VARIABLES: Final = (
    *("GOOGLE_BEARER_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_KEY"),
    *("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "SERVICE_ACCOUNT"),
)
"""Of object_store; each is enough."""
_LOGIN: Final = ".config/gcloud/application_default_credentials.json"
_ON_GOOGLE: Final = ("K_SERVICE", "GCE_METADATA_HOST")
"""Variables of Cloud Run and its functions, and of whoever has a metadata server elsewhere."""
_PRODUCT: Final = Path("/sys/class/dmi/id/product_name")


class Google:
    """See ``clouds.Cloud``."""

    signing = "a bearer token, which signs nothing; the body is not hashed"
    credentials_hint = (
        "set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`"
    )

    def endpoint(self) -> str:
        return "https://storage.googleapis.com"

    def has_credentials(self, endpoint_url: str = "") -> bool:
        elsewhere = bool(endpoint_url) and not is_google(endpoint_url)
        if elsewhere or any(map(os.environ.get, (*_VARIABLES, *_ON_GOOGLE))):
            return True
        return (Path.home() / _LOGIN).exists() or _is_google_machine()

    def open_store(
        self, target: Target, endpoint_url: str, client_options: "ClientConfig"
    ) -> "GCSStore":
        from obstore.store import GCSStore  # noqa: PLC0415 - loaded where it is used

        config: GCSConfig = {"base_url": endpoint_url, "skip_signature": False}
        if not is_google(endpoint_url):
            config["bearer_token"] = NOBODY
        return GCSStore(
            target.bucket,
            config=config,
            client_options=client_options,
            retry_config={"max_retries": 0},
        )

    def version(self, meta: "ObjectMeta") -> str:
        return meta["version"] or ""

    def open_requests(self, target: Target, user_agent: str, timeout_s: float) -> "GoogleRequests":
        from serverless_bench.clients.clouds.google_requests import (  # noqa: PLC0415
            GoogleRequests,
        )

        return GoogleRequests(target, user_agent, timeout_s)


def is_google(url: str) -> bool:
    """Tell whether an endpoint is Google's, over https: a token is as good as a password."""
    parts = urlsplit(url)
    return parts.scheme == "https" and _OWN_HOST.fullmatch(parts.netloc) is not None


def _is_google_machine() -> bool:
    """Tell whether a metadata server will have credentials, without asking for one.

    As google-auth does: elsewhere nobody answers, and to find that out takes seconds.
    """
    try:
        return _PRODUCT.read_text(encoding="ascii").startswith("Google")
    except (OSError, ValueError):
        return False
