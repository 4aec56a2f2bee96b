"""Defaults of settings that are not constants of a specification.

They are in a separate module because help texts need them and must not wait for imports.
"""

from typing import Final

DEFAULT_EXECUTOR: Final = "local"
DEFAULT_PREFIX: Final = "sbench/"
CONTROL_PREFIX: Final = "sbench-control/"
DEFAULT_MB: Final = 64
DEFAULT_MIX: Final = "get=45,head=30,put=15,delete=10"
"""Default mix of warp (cli/mixed.go), which uses the name STAT for head."""
USUAL_NUMBER: Final = 16
"""Default number of functions of a workload."""
REMOTE: Final = "Remote functions"
"""Section of the help for flags that do not apply to functions on this machine."""
