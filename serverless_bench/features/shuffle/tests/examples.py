"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from serverless_bench.features.shuffle.part import Shuffling
from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "shuffle": Command(
        ("--size", "10", "--mappers", "5"),
        2,
        [(*HOW[:2], "--mappers", "1", "--reducers", "1", "--size", "1KiB")],
    ),
}
NEEDED: Final[dict[str, dict[str, Any]]] = {
    "shuffle": {"mappers": 1, "reducers": 1, "total": 8},
}
LOADS: Final[dict[str, dict[str, Any]]] = {
    "shuffle": {
        "mappers": 2,
        "reducers": 1,
        "total": 9,
        "partitions": "ranges",
        "reduce": "eager",
        "patience": 1.0,
        "poll": 1.0,
    },
}
SEEDS: Final[dict[str, dict[str, Any]]] = {
    "shuffle-minio": {"workload": "shuffle", "mappers": 2, "reducers": 2, "size": 4000},
}
PARTS: Final = {"shuffle": Shuffling}
SECTIONS: Final = {
    "Shuffling": "shuffle",
    "ShufflePhase": "shuffle_phases",
    "LostPartition": "lost_partitions",
}
