"""What holds for settings that nobody gives, where that is no constant of a specification.

Apart from the settings themselves, because help texts name them, and must not wait.
"""

from typing import Final

DEFAULT_EXECUTOR: Final = "local"
DEFAULT_PREFIX: Final = "sbench/"
CONTROL_PREFIX: Final = "sbench-control/"
DEFAULT_MB: Final = 64
DEFAULT_MIX: Final = "get=45,head=30,put=15,delete=10"
"""warp's (cli/mixed.go): STAT is its word for head."""
USUAL_NUMBER: Final = 16
"""Functions of a workload that says no other number."""
