"""Variables of the environment, most of them AWS's, for libraries that do not read them."""

import os
from pathlib import Path

from serverless_bench.clients.sigv4 import Keys
from serverless_bench.errors import AccessDenied


def find_keys() -> Keys | None:
    """Return the credentials of the environment; None if there are none."""
    access = os.environ.get("AWS_ACCESS_KEY_ID")
    secret = os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not access or not secret:
        return None
    # The first name is the old one, which AWS's own libraries still prefer.
    token = first_set(("AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"))
    return Keys(access, secret, token or None)


def first_set(names: tuple[str, ...]) -> str:
    """Return the first of some variables that is set; empty if none is."""
    return next(filter(None, map(os.environ.get, names)), "")


def no_keys(hint: str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") -> AccessDenied:
    """Return the error of a request that cannot be signed."""
    return AccessDenied(f"no credentials: {hint}")


def ca_bundle() -> Path | None:
    """Return the file of trusted certificates that AWS's SDKs are set to use."""
    name = os.environ.get("AWS_CA_BUNDLE")
    return Path(name) if name else None
