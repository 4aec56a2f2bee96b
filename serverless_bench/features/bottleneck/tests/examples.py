"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.bottleneck.causes import Bottleneck

PARTS: Final = {"bottleneck": Bottleneck}
SECTIONS: Final = {
    "Bottleneck": "bottleneck",
}
