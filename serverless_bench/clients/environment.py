"""Environment variables, mostly of AWS, for libraries that do not read them."""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from serverless_bench.clients.sigv4 import Keys
from serverless_bench.errors import AccessDenied

CA_HINT: Final = "set AWS_CA_BUNDLE=FILE to the certificate of its authority"
"""Hint for an untrusted certificate, for example of a proxy that inspects TLS."""
_CERTIFICATES: Final = {
    r"expired|not.?yet.?valid": (
        "is not valid at this time",
        "it has to be renewed, unless the clock of this machine is wrong",
    ),
    r"mismatch|doesn't match|not.?valid.?for": (
        "is for another host",
        "use a name of the host that the certificate has",
    ),
}
"""Problems of certificates that no authority solves, and hints, by patterns of messages."""
PROXY_HINT: Final = "check HTTPS_PROXY and HTTP_PROXY; add user:password@ if required"


def certificate_problem(why: str) -> tuple[str, str]:
    """Return what is wrong with a certificate, and a hint, from the message of a library."""
    for pattern, problem in _CERTIFICATES.items():
        if re.search(pattern, why, re.IGNORECASE):
            return problem
    bundle = ca_bundle()
    return f"is not trusted{f' by AWS_CA_BUNDLE, {bundle}' if bundle else ''}", CA_HINT


def find_keys() -> Keys | None:
    """Return the credentials in the environment; None without any."""
    access = os.environ.get("AWS_ACCESS_KEY_ID")
    secret = os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not access or not secret:
        return None
    # The first name is obsolete, but AWS's libraries still prefer it.
    token = first_set(("AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"))
    return Keys(access, secret, token or None)


def first_set(names: tuple[str, ...]) -> str:
    """Return the first set variable of ``names``; empty if none is set."""
    return next(filter(None, map(os.environ.get, names)), "")


def lasting_keys() -> Keys | None:
    """Return the credentials in the environment, unless they expire and may be renewed there."""
    return None if "AWS_CREDENTIAL_EXPIRATION" in os.environ else find_keys()


def no_keys(hint: str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") -> AccessDenied:
    """Return the error of a request that cannot be signed."""
    return AccessDenied(f"no credentials: {hint}")


def ca_bundle() -> Path | None:
    """Return the file of trusted certificates configured for AWS's SDKs."""
    name = os.environ.get("AWS_CA_BUNDLE")
    return Path(name) if name else None


def find_proxy(url: str) -> str | None:
    """Return the URL of the proxy configured in the environment for a URL."""
    if not any(
        name.lower().endswith("_proxy") for name in os.environ.keys() - {"NO_PROXY", "no_proxy"}
    ):
        return None
    # botocore knows the rules of NO_PROXY, but importing it takes half of a cold start.
    from botocore.utils import get_environ_proxies  # noqa: PLC0415

    proxy: str | None = get_environ_proxies(url).get(urlsplit(url).scheme)
    # A proxy without a scheme is accepted, as in all other tools.
    return proxy if not proxy or "://" in proxy else f"http://{proxy.removeprefix('//')}"


def without_user(url: str) -> str:
    """Return the URL of a proxy without user name and password."""
    return f"{urlsplit(url).scheme}://{urlsplit(url).netloc.rpartition('@')[2]}"
