"""What clients find around them: environment variables, mostly of AWS, and certificates of servers.

Some libraries do not read the variables. OpenSSL, rustls and libcurl each have their own words
for the same faults of a certificate.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from serverless_bench.base.errors import AccessDenied, CertificateRefused
from serverless_bench.clients.sigv4 import Keys

FILES: Final = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}
"""Usual paths of the files of the AWS configuration, by the variables that name others."""
PROFILES: Final = ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")
"""Variables with the name of a profile in these files."""
_DEFAULT: Final = "default"
REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""The AWS CLI also uses the first variable; botocore does not."""
PROXY_HINT: Final = "check HTTPS_PROXY and HTTP_PROXY; add user:password@ if required"


def find_keys() -> Keys | None:
    """Return the credentials in the environment; None without any."""
    access = os.environ.get("AWS_ACCESS_KEY_ID")
    secret = os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not access or not secret:
        return None
    # The first name is obsolete, but AWS's libraries still prefer it.
    return Keys(access, secret, first_set(("AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN")) or None)


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
    if not name:
        files = [os.environ.get(file, usual) for file, usual in FILES.items()]
        name = _of_profile("ca_bundle", first_set(PROFILES) or _DEFAULT, *files)
    return Path(name) if name else None


@cache
def _of_profile(setting: str, profile: str, *files: str) -> str:
    """Return a setting of a profile of the AWS configuration; empty if it has none.

    botocore would take half of a cold start for this.
    """
    from configparser import Error, RawConfigParser

    value = ""
    for name, prefix in zip(files, ("profile ", ""), strict=True):
        parser = RawConfigParser(default_section="")
        # A file that cannot be read is reported where credentials are looked for.
        with suppress(Error, OSError, UnicodeError):
            parser.read(Path(name).expanduser())
        section = profile if profile == _DEFAULT else f"{prefix}{profile}"
        value = parser.get(section, setting, fallback=value)
    return value and str(Path(value).expanduser())


def find_proxy(url: str) -> str | None:
    """Return the URL of the proxy configured in the environment for a URL."""
    if not any(
        name.lower().endswith("_proxy") for name in os.environ.keys() - {"NO_PROXY", "no_proxy"}
    ):
        return None
    # botocore knows the rules of NO_PROXY, but importing it takes half of a cold start.
    from botocore.utils import get_environ_proxies

    proxy: str | None = get_environ_proxies(url).get(urlsplit(url).scheme)
    # A proxy without a scheme is accepted, as in all other tools.
    return proxy if not proxy or "://" in proxy else f"http://{proxy.removeprefix('//')}"


def without_user(url: str) -> str:
    """Return the URL of a proxy without user name and password."""
    return f"{urlsplit(url).scheme}://{urlsplit(url).netloc.rpartition('@')[2]}"


CA_HINT: Final = "set AWS_CA_BUNDLE=FILE to the certificate of its authority"
"""Hint for an untrusted certificate, for example of a proxy that inspects TLS."""
_CLOCK_HINT: Final = "let the store renew it, and check this machine's clock"
_IS_IT: Final = re.compile(
    r"certificate.?verify.?failed|doesn't match (?:either|')|InvalidCertificate"
    r"|(?:peer|server) certificate",
    re.IGNORECASE,
)
_FAULTS: Final[Sequence[tuple[str, str, str]]] = (
    (r"not yet valid|valid yet|NotValidYet", "is not valid yet", _CLOCK_HINT),
    (r"expired", "has expired", _CLOCK_HINT),
    (
        r"mismatch|doesn't match|not valid for|NotValidForName",
        "is for another host",
        "`endpoint_url` with a name in the certificate; `addressing` path if it lacks the bucket's",
    ),
    (
        r"CaUsedAsEndEntity",
        "is that of an authority itself, which this client does not accept from a server",
        "let the authority sign one for the server, or use another `client`",
    ),
    ("", "is not trusted", CA_HINT),
)
"""Words for a fault, a description and a hint; the first match wins."""


def certificate_error(text: str) -> CertificateRefused | None:
    """Return the error for a client's text about a certificate; None for any other text."""
    return refusal(text) if _IS_IT.search(text) else None


def refusal(text: str) -> CertificateRefused:
    """Return the error of a certificate that was not accepted, from the client's text."""
    pattern, what, hint = next(f for f in _FAULTS if re.search(f[0], text, re.IGNORECASE))
    bundle = ca_bundle()
    if not pattern and bundle is not None:
        hint = f"{hint}; {bundle} lacks it"
    return CertificateRefused(what, hint=hint)
