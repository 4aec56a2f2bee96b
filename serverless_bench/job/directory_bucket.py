"""Directory buckets, in which S3 Express One Zone keeps its objects: known by their names.

Amazon S3 user guide, "Directory bucket naming rules" and "Regional and Zonal endpoints". The name
of such a bucket ends in its zone: ``BUCKET--use1-az4--x-s3``.
"""

import re
from typing import Final

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*--([a-z0-9-]+-az[0-9]+)--x-s3")
_SHORT: Final = {
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


def zone_of(bucket: str) -> str | None:
    """Return the zone of a directory bucket, as in ``use1-az4``; None for any other bucket."""
    match = _NAME.fullmatch(bucket)
    return match[1] if match else None


def is_directory_bucket(bucket: str) -> bool:
    """Tell whether a bucket is a directory bucket."""
    return zone_of(bucket) is not None


def is_zone_in(zone: str, region: str) -> bool:
    """Tell whether a zone can be one of a region, by their names."""
    first, *middle, number = region.split("-")
    short = first + "".join(_SHORT.get(word, word) for word in middle) + number
    return zone.startswith(f"{short}-")


def zonal_endpoint(zone: str, region: str) -> str:
    """Return the endpoint of a zone, to whose host name the bucket's name is put."""
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://s3express-{zone}.{region}.{domain}"
