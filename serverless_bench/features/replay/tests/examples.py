"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from tests.data.access_logs import NO_REQUEST
from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "replay": Command(("nothing.log",), 2, [("OWN/theirs.csv", *HOW)]),
}
NEEDED: Final[dict[str, dict[str, Any]]] = {
    "replay": {"log": NO_REQUEST},
}
LOADS: Final[dict[str, dict[str, Any]]] = {
    "replay": {"log": NO_REQUEST, "speed": 2.0},
}
SEEDS: Final[dict[str, dict[str, Any]]] = {
    "replay-obstore": {"workload": "replay"},
}
