"""A store to run against that starts by itself: one file and one line here each."""

from collections.abc import Mapping
from typing import Final

STORES: Final[Mapping[str, str]] = {
    "seaweedfs": "serverless_bench.stores.seaweedfs:SeaweedFS",
}
