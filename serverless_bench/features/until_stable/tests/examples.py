"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.rundir.schema import Stability

PARTS: Final = {"stability": Stability | None}
SECTIONS: Final = {"Stability": "stability"}
