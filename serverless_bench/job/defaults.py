"""What holds for settings that nobody gives, where that is no constant of a specification.

Apart from the settings themselves, because help texts name them, and must not wait.
"""

from collections.abc import Mapping
from typing import Final

DEFAULT_EXECUTOR: Final = "local"
DEFAULT_PREFIX: Final = "sbench/"
CONTROL_PREFIX: Final = "sbench-control/"
DEFAULT_MB: Final = 64
DEFAULT_MIX: Final = "get=45,head=30,put=15,delete=10"
"""warp's (cli/mixed.go): STAT is its word for head."""
USUAL_NUMBER: Final = 16
DEFAULT_NUMBER: Final[Mapping[str, int]] = {"array": 1, "contend": 4, "mixed": 4, "function": 4}
"""Functions of a workload; of others the usual number, and of a read as many as read all keys."""
DEFAULT_OBJECTS: Final[Mapping[str, int]] = {"mixed": 16}
"""Objects of each function of a workload; one of others."""
