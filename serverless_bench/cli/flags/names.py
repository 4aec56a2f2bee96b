"""What the command line and its files call the settings that a message names in backquotes."""

from typing import Final

from serverless_bench.errors import SbenchError

OLD_SPELLINGS: Final = {
    "bucket-name": "bucket",
    "key-prefix": "prefix",
    "mb-per-file": "mb",
    "outdir": "run-dir",
    "outfile": "pickle",
    "s3-key": "key",
}
"""PyWren's and Lithops' flags; underscores are hyphens everywhere."""
_OF_SERIES: Final = frozenset(
    {
        *("block", "blocks", "budget", "errors", "highest", "lowest", "new", "numbers", "old"),
        *("over", "p99", "power", "precision", "tolerance", "warm-up-blocks"),
    }
)
"""Flags of commands that run jobs again and again."""


def spelled(token: str) -> str:
    """Return today's spelling of a flag, a command or a key of ``sbench.toml``."""
    hyphened = token.replace("_", "-")
    return OLD_SPELLINGS.get(hyphened, hyphened)


def well_known() -> frozenset[str]:
    """Return the flags of jobs and series, as they are spelled: nearly all that commands share."""
    from serverless_bench.cli.job import Output
    from serverless_bench.settings.names import setting_names

    return _OF_SERIES | set(map(spelled, (*setting_names(), *Output.__slots__)))


def as_flag(name: str) -> str:
    """Return the flag of a setting; other words in backquotes as they are."""
    flag = spelled(name)
    return f"--{flag}" if flag in well_known() else f"`{name}`"


def as_key(name: str) -> str:
    """Return the key of a setting in a file."""
    return as_flag(name).removeprefix("--")


def with_flags(text: str) -> str:
    """Return a text with flags in place of settings."""
    from serverless_bench.settings.schema import renamed

    return renamed(text, as_flag)


def spell(error: SbenchError) -> None:
    """Put flags into the message and the hint of an error, in place of settings."""
    error.args = (with_flags(str(error)),)
    error.hint = with_flags(error.hint)
