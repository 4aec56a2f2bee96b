"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from serverless_bench.features.listing.part import Listings
from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "list": Command(("--by", "none"), 2, [(*HOW, "--objects", "20", "--breadth", "2")]),
}
LOADS: Final[dict[str, dict[str, Any]]] = {
    "list": {
        "depth": 2,
        "breadth": 2,
        "by": "sequence",
        "versions": True,
        "tree": "r",
        "parts": 1,
        "listers": 1,
    },
}
NEEDED: Final[dict[str, dict[str, Any]]] = {"list": {"breadth": 1}}
SEEDS: Final[dict[str, dict[str, Any]]] = {
    "list": {"workload": "list", "size": 10, "objects": 4, "breadth": 2, "number": 1},
}
PARTS: Final = {"listings": Listings}
SECTIONS: Final = {"Listings": "listings", "KeyProblem": "listing_problems"}
