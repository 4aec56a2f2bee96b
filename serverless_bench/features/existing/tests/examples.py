"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.existing.part import ExistingObjects

PARTS: Final = {"existing": ExistingObjects}
SECTIONS: Final = {"ExistingObjects": "existing"}
