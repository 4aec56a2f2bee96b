"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.barrier.part import GateSummary

PARTS: Final = {"gate": GateSummary | None}
SECTIONS: Final = {"GateSummary": "gate"}
