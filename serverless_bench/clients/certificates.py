"""Certificates of servers that a client does not accept: what is wrong with them, and what helps.

OpenSSL, rustls and libcurl each have their own words for the same faults.
"""

import re
from collections.abc import Sequence
from typing import Final

from serverless_bench.base.errors import CertificateRefused
from serverless_bench.clients.environment import ca_bundle

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
    faults = (f for f in _FAULTS if re.search(f[0], text, re.IGNORECASE))
    pattern, what, hint = next(faults)
    bundle = ca_bundle()
    if not pattern and bundle is not None:
        hint = f"{hint}; {bundle} lacks it"
    return CertificateRefused(what, hint=hint)
