"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.barrier.part import BarrierSummary

PARTS: Final = {"barrier": BarrierSummary | None}
SECTIONS: Final = {"BarrierSummary": "barrier"}
