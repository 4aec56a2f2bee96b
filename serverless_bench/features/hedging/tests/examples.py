"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from serverless_bench.features.hedging.figures import HedgingSummary
from tests.house.examples import FEW

SEEDS: Final[dict[str, dict[str, Any]]] = {
    "hedged": {"workload": "mixed", **FEW, "operations": 12, "hedge": "50ms"},
}
PARTS: Final = {"hedging": HedgingSummary}
SECTIONS: Final = {
    "HedgingSummary": "hedging",
}
