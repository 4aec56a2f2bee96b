"""Addresses of stores: valid endpoints, and the endpoints and buckets that belong to AWS."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from serverless_bench.base.errors import UsageError

_HOST: Final = re.compile(r"[A-Za-z0-9._~:%\[\]-]+")
"""Characters of a host and a port (RFC 3986, 3.2.2, without those that no store uses)."""
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*/?", re.ASCII)
"""Path below which a gateway has its S3 interface."""
_AWS_S3: Final = re.compile(
    r"s3[a-z0-9-]*(?:\.dualstack)?(?:\.[a-z0-9-]+)?\.(amazonaws\.(?:com(?:\.cn)?|eu))",
    re.IGNORECASE,
)
"""Hosts of Amazon's S3 without a bucket (AWS General Reference, "Amazon S3 endpoints"). Customers
also have names below ``amazonaws.com``, but none of this form."""
_PORTS: Final = {"http": 80, "https": 443}
_DIRECTORY_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9-]*--([a-z0-9-]+-az[0-9]+)--x-s3")
"""Names of directory buckets of S3 Express One Zone, which end in the zone (Amazon S3 user guide,
"Directory bucket naming rules" and "Regional and Zonal endpoints")."""
_ENDS: Final = {"cn": "com.cn", "eusc": "eu"}
"""Domain endings after ``amazonaws``, by the prefix of the partition's regions."""


def parse_endpoint(text: str) -> str:
    """Return the endpoint in ``text``, without a trailing slash and without a default port.

    Raises
    ------
    UsageError
        If it is anything but ``http(s)://host[:port][/path]``.
    """
    hint = "an endpoint is http(s)://host[:port][/path]"
    refuse_password(text)
    shown, *rest = re.split(r"[?#]", text, maxsplit=1)
    if rest:
        # The rest may be a signature, which does not belong into an output.
        raise UsageError(f"`endpoint_url` {shown!r} has a query or a fragment", hint=hint)
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as exc:
        raise UsageError(f"`endpoint_url` {text!r} is not a URL: {exc}", hint=hint) from exc
    if "://" not in text and _HOST.fullmatch(text):
        hint = f"`endpoint_url` http://{text}, or https"
    # Python's parser drops line breaks and tabs, but other libraries do not.
    is_host = _HOST.fullmatch(parts.netloc) and text.strip().isprintable()
    has_server = parts.scheme in _PORTS and parts.hostname and port != 0
    if not (has_server and is_host and _PATH.fullmatch(parts.path)):
        raise UsageError(f"`endpoint_url` {text!r} is not a URL of a store", hint=hint)
    return without_default_port(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}")


def without_default_port(url: str) -> str:
    """Return an endpoint without the default port of the scheme.

    Clients leave it out of the ``Host`` header, and proxies do so before a store checks the
    signature.
    """
    scheme, separator, rest = url.partition("://")
    server, slash, path = rest.partition("/")
    return f"{scheme}{separator}{server.removesuffix(f':{_PORTS.get(scheme)}')}{slash}{path}"


def refuse_password(text: str) -> None:
    """Raise an error for a URL that contains a user or a password, without showing the URL.

    Raises
    ------
    UsageError
        If it contains either.
    """
    if "@" in text:
        raise UsageError(
            "`endpoint_url` contains a user or a password",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        )


def is_aws(url: str) -> bool:
    """Return whether an endpoint is Amazon's S3 over https: others have no use for a signature."""
    return _aws_partition(urlsplit(url)) is not None


def is_here(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_billed_by_aws(url: str) -> bool:
    """Return whether the host of an endpoint has a name in AWS's domains."""
    host = urlsplit(url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu"))


def redirected(url: str, new_url: str | None, old_region: str, region: str | None) -> str | None:
    """Return the URL to use after a redirect; None if requests must not follow it.

    A signature is meant for the store that the user named. Only Amazon's S3 may redirect to another
    host, which must also be Amazon's S3, in the same partition, over https.

    Parameters
    ----------
    url, old_region
        Destination of the request.
    new_url, region
        Location of the bucket according to the store, as far as it was sent.
    """
    if region is not None and not re.fullmatch(r"[a-z0-9-]{1,40}", region):
        return None
    partition = _aws_partition(urlsplit(url))
    try:
        new = urlsplit(new_url or url)
        stays = _place(new) == _place(urlsplit(url)) and "@" not in new.netloc
    except ValueError:
        return None
    if not stays:
        return new_url if partition is not None and partition == _aws_partition(new) else None
    # On AWS the region determines the host: its name contains the region.
    moves = partition is not None and region is not None
    return url.replace(f".{old_region}.", f".{region}.") if moves else url


def zone_of(bucket: str) -> str | None:
    """Return the zone of a directory bucket, as in ``use1-az4``; None for any other bucket."""
    match = _DIRECTORY_BUCKET.fullmatch(bucket)
    return match[1] if match else None


def is_directory_bucket(bucket: str) -> bool:
    """Return whether a bucket is a directory bucket."""
    return zone_of(bucket) is not None


def zonal_endpoint(zone: str, region: str) -> str:
    """Return the endpoint of a zone; the bucket's name is prepended to the host."""
    end = _ENDS.get(region.partition("-")[0], "com")
    return f"https://s3express-{zone}.{region}.amazonaws.{end}"


def _aws_partition(url: SplitResult) -> str | None:
    """Return the domain of an address of Amazon's S3; None for other addresses."""
    match = _AWS_S3.fullmatch(url.netloc.removesuffix(":443"))
    return match[1].lower() if match and url.scheme == "https" else None


def _place(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port or _PORTS.get(url.scheme)
