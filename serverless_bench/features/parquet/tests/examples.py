"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from serverless_bench.features.parquet.figures import Scans
from tests.data.runs import LIKE
from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "parquet": Command(("--column-fraction", "half"), 2, [(*HOW, "--size", "1MiB")]),
}
LOADS: Final[dict[str, dict[str, Any]]] = {
    "parquet": {
        "row_groups": 3,
        "columns": 5,
        "layout_from": LIKE,
        "column_fraction": 0.5,
        "coalesce_gap": 0,
        "footer_guess": 100,
    },
}
SEEDS: Final[dict[str, dict[str, Any]]] = {
    "parquet-awscrt": {"workload": "parquet", "size": 20_000, "objects": 1, "number": 1},
}
PARTS: Final = {"scans": Scans}
SECTIONS: Final = {
    "Scans": "scans",
}
