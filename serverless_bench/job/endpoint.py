"""Addresses of stores: what an endpoint may be, and which ones, and which buckets, are AWS's."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from serverless_bench.errors import UsageError

_HOST: Final = re.compile(r"[A-Za-z0-9._~:%\[\]-]+")
"""What a host and a port are made of (RFC 3986, 3.2.2, without what nobody's store has)."""
_AWS_S3: Final = re.compile(
    r"s3[a-z0-9-]*(?:\.dualstack)?(?:\.[a-z0-9-]+)?\.(amazonaws\.(?:com(?:\.cn)?|eu))",
    re.IGNORECASE,
)
"""Hosts of Amazon's S3 without a bucket (AWS General Reference, "Amazon S3 endpoints"). Customers
have names below ``amazonaws.com``, too, but none that look like these."""
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_PORTS: Final = {"http": 80, "https": 443}
_DIRECTORY_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9-]*--([a-z0-9-]+-az[0-9]+)--x-s3")
"""Where S3 Express One Zone keeps its objects: the bucket's name ends in its zone (Amazon S3 user
guide, "Directory bucket naming rules" and "Regional and Zonal endpoints")."""
_ENDS: Final = {"cn": "com.cn", "eusc": "eu"}
"""Ends of names below ``amazonaws`` by how the regions of a partition begin."""
_SHORT_NAMES: Final = {
    "central": "c",
    "east": "e",
    "gov": "g",
    "north": "n",
    "northeast": "ne",
    "northwest": "nw",
    "south": "s",
    "southeast": "se",
    "southwest": "sw",
    "west": "w",
}
"""How the names of zones shorten the names of regions."""


def parse_endpoint(text: str) -> str:
    """Return the endpoint that ``text`` names, without a slash at its end.

    Raises
    ------
    UsageError
        If it is anything but ``http(s)://host[:port]``: clients would leave the rest out, or
        ask for other objects, each in its own way.
    """
    hint = "an endpoint is http(s)://host[:port]"
    refuse_password(text)
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as exc:
        raise UsageError(f"`endpoint_url` {text!r} is not a URL: {exc}", hint=hint) from exc
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise UsageError(f"`endpoint_url` {text!r} is not a URL of a store", hint=hint)
    extra = [
        name
        for name, there in (
            ("a path", parts.path.strip("/")),
            ("a query", "?" in text),
            ("a fragment", "#" in text),
        )
        if there
    ]
    if extra:
        raise UsageError(
            f"`endpoint_url` {text!r} has {' and '.join(extra)}",
            hint=f"{hint}; the bucket goes into `bucket`, and what keys begin with into `prefix`",
        )
    # Python's parser drops line breaks and tabs, other libraries do not.
    if not _HOST.fullmatch(parts.netloc) or not text.strip().isprintable():
        raise UsageError(f"`endpoint_url` {text!r} is not a URL of a store", hint=hint)
    return f"{parts.scheme}://{parts.netloc}"


def refuse_password(text: str) -> None:
    """Refuse a URL with a user or a password in it; nothing of it is shown.

    Raises
    ------
    UsageError
        If it has.
    """
    if "@" in text:
        raise UsageError(
            "`endpoint_url` has a user or a password in it",
            hint="credentials go into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        )


def is_aws(url: str) -> bool:
    """Tell whether an endpoint is one of Amazon's S3, over https: a signature helps nobody else."""
    return _aws_partition(urlsplit(url)) is not None


def is_here(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_billed_by_aws(url: str) -> bool:
    """Tell whether the host of an endpoint has a name of AWS's, whatever it is."""
    host = urlsplit(url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu"))


def redirected(url: str, new_url: str | None, old_region: str, region: str | None) -> str | None:
    """Return where requests go when a store sends them elsewhere; None if they must not go there.

    A signature is for the store that the user named. Amazon's S3 alone may name another host:
    one of its own, in the same partition and as safe.

    Parameters
    ----------
    url, old_region
        Where the request went.
    new_url, region
        Where the store says that the bucket is, as far as it does.
    """
    if region is not None and not _REGION.fullmatch(region):
        return None
    partition = _aws_partition(urlsplit(url))
    try:
        new = urlsplit(new_url or url)
        stays = _place(new) == _place(urlsplit(url)) and "@" not in new.netloc
    except ValueError:
        return None
    if not stays:
        return new_url if partition is not None and partition == _aws_partition(new) else None
    # On AWS the region alone says where: its name is part of the host's.
    moves = partition is not None and region is not None
    return url.replace(f".{old_region}.", f".{region}.") if moves else url


def zone_of(bucket: str) -> str | None:
    """Return the zone of a directory bucket, as in ``use1-az4``; None for any other bucket."""
    match = _DIRECTORY_BUCKET.fullmatch(bucket)
    return match[1] if match else None


def is_directory_bucket(bucket: str) -> bool:
    """Tell whether a bucket is a directory bucket."""
    return zone_of(bucket) is not None


def is_zone_in(zone: str, region: str) -> bool:
    """Tell whether a zone can be one of a region, by their names."""
    first, *middle, number = region.split("-")
    short = first + "".join(_SHORT_NAMES.get(word, word) for word in middle) + number
    return zone.startswith(f"{short}-")


def zonal_endpoint(zone: str, region: str) -> str:
    """Return the endpoint of a zone, to whose host name the bucket's name is put."""
    end = _ENDS.get(region.partition("-")[0], "com")
    return f"https://s3express-{zone}.{region}.amazonaws.{end}"


def _aws_partition(url: SplitResult) -> str | None:
    """Return the domain of an address of Amazon's S3; None if it is none."""
    found = _AWS_S3.fullmatch(url.netloc.removesuffix(":443"))
    return found[1].lower() if found and url.scheme == "https" else None


def _place(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port or _PORTS.get(url.scheme)
