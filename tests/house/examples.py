"""Examples of the features, for tests of all commands, workloads and figures.

A feature has them in ``tests/examples.py`` of its folder, in tables with these names:

``COMMANDS``
    a `Command` by name;
``LOADS``
    by workload, the fields that only its loads have, each with a value that is not the default;
``NEEDED``
    by workload, the fields without a default;
``SEEDS``
    by name, the settings of recorded runs that are spoiled (``tests/fuzz/seeds.py``);
``PARTS``
    by name in the JSON report, the types of its parts of a summary;
``ANSWERS``
    by command, the type of its kept answer, if that is in its JSON;
``SECTIONS``
    by class, the section of a ``figures.toml`` that defines its fields.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from tests.house.features import FEATURES, TABLE, features

HOW: Final = ("--bucket", "mine", "--number", "1")
SMALL: Final = (*HOW, "--size", "1KiB")
SMALLER: Final = ("--bucket", "mine", "--size", "1KiB")
SHORT: Final = ("--budget", "2s", "--block", "1s")
FEW: Final = {"size": 1000, "objects": 2, "number": 2}
"""Settings of a small job."""


class Command(NamedTuple):
    """Calls of a command."""

    arguments: tuple[str, ...]
    """Of a short call, in a folder with a run called ``run``."""
    code: int
    """Its exit code."""
    calls: Sequence[Sequence[str]]
    """Arguments of harmless calls in a hostile folder; OWN is a folder of the user's own."""
    codes: tuple[int, ...] = (0,)
    """Their exit codes."""


def examples(table: str) -> dict[str, Any]:
    """Return the entries of a table of all features.

    Raises
    ------
    LookupError
        If two features have an entry of a name.
    """
    found: dict[str, Any] = {}
    for feature in features():
        if not (TABLE.parent / feature / "tests" / "examples.py").exists():
            continue
        entries = getattr(import_module(f"{FEATURES}.{feature}.tests.examples"), table, {})
        if twice := found.keys() & entries.keys():
            raise LookupError(f"{feature} is not the first with examples of {min(twice)}")
        found |= entries
    return found
