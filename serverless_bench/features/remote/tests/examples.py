"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.remote.deliveries import Deliveries

PARTS: Final = {"deliveries": Deliveries}
SECTIONS: Final = {
    "Deliveries": "deliveries",
    "Relaunch": "relaunches",
}
