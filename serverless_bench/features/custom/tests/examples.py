"""Examples for tests of all commands, workloads and figures."""

from typing import Any, Final

from tests.house.examples import HOW, Command

COMMANDS: Final = {
    "custom": Command(("nothing.py:f",), 2, [("OWN/mine.py:work", *HOW)]),
}
LOADS: Final[dict[str, dict[str, Any]]] = {
    "custom": {"code": "x"},
}
