"""What the command line and its files call the settings that a message names in backquotes."""

from collections.abc import Callable
from typing import Final

from serverless_bench.errors import SbenchError

_OUTPUT: Final = frozenset({"run_dir", "pickle", "ceiling", "max_cost", "prices", "memory", "arch"})
"""Flags that are no settings of a job."""


def as_flag(name: str) -> str:
    """Return the flag of a setting; other words in backquotes as they are."""
    from serverless_bench.driver.settings import setting_names, setting_of

    setting = setting_of(name)
    if setting not in _OUTPUT and setting not in setting_names():
        return f"`{name}`"
    return f"--{setting.replace('_', '-')}"


def as_key(name: str) -> str:
    """Return the key of a setting in a file."""
    return as_flag(name).removeprefix("--")


def with_flags(text: str) -> str:
    """Return a text with flags in place of settings."""
    if "`" not in text:
        return text
    from serverless_bench.driver.schema import renamed

    return renamed(text, as_flag)


def spell(error: SbenchError, spelling: Callable[[str], str] = as_flag) -> None:
    """Put flags, or keys, into the message and the hint of an error, in place of settings."""
    if "`" not in f"{error}{error.hint}":
        return
    from serverless_bench.driver.schema import renamed

    error.args = (renamed(str(error), spelling),)
    error.hint = renamed(error.hint, spelling)
