"""What clients say of certificates that they do not accept; all of these texts were observed."""

import pytest

from serverless_bench.clients.environment import CA_HINT, certificate_error

OLD, OTHER, UNKNOWN, AUTHORITY = "has expired", "is for another host", "is not trusted", "authority"
OPENSSL = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
RUSTLS = "error sending request: client error (Connect): invalid peer certificate: "


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"{OPENSSL}certificate has expired (_ssl.c:1006)", OLD),
        (f"{OPENSSL}certificate is not yet valid (_ssl.c:1006)", "is not valid yet"),
        (f"{OPENSSL}IP address mismatch, certificate is not valid for '127.0.0.1'.", OTHER),
        (f"{OPENSSL}Hostname mismatch, certificate is not valid for 'store'.", OTHER),
        ("SSL validation failed for https://s hostname 's' doesn't match 'localhost'", OTHER),
        (f"{OPENSSL}self-signed certificate (_ssl.c:1006)", UNKNOWN),
        (f"{OPENSSL}unable to get local issuer certificate (_ssl.c:1006)", UNKNOWN),
        (f"{RUSTLS}certificate expired: verification time 1795951286 (UNIX)", OLD),
        (f'{RUSTLS}certificate not valid for name "127.0.0.1"', OTHER),
        (f"{RUSTLS}UnknownIssuer", UNKNOWN),
        (f"{RUSTLS}Other(OtherError(CaUsedAsEndEntity))", AUTHORITY),
        ("error: InvalidCertificate(\n NotValidForNameContext {", OTHER),
        ("error: InvalidCertificate(\n NotValidYetContext {", "is not valid yet"),
    ],
)
def test_faults_of_certificates_are_told_apart(text: str, what: str) -> None:
    error = certificate_error(text)
    assert error is not None
    assert (error.code, error.retryable) == ("certificate", False)
    assert what in error.what
    assert error.hint.startswith(CA_HINT) is (what == UNKNOWN)


@pytest.mark.parametrize(
    "text", ["connection reset by peer", "wrong version number", "ExpiredToken"]
)
def test_other_failures_are_none_of_a_certificate(text: str) -> None:
    assert certificate_error(text) is None
