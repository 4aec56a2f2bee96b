"""Names of settings on the command line and in files, for messages that name a setting."""

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
"""Flags of PyWren and Lithops, with hyphens instead of underscores."""
_OF_SERIES: Final = frozenset(
    {
        *("block", "blocks", "budget", "errors", "highest", "lowest", "new", "numbers", "old"),
        *("over", "p99", "power", "precision", "tolerance", "warm-up-blocks"),
    }
)
"""Flags of commands that run a series of jobs."""


def spelled(token: str) -> str:
    """Return the current spelling of a flag, a command or a key of ``sbench.toml``."""
    hyphened = token.replace("_", "-")
    return OLD_SPELLINGS.get(hyphened, hyphened)


def well_known() -> frozenset[str]:
    """Return the spelling of the flags of jobs and series, which are most of the shared flags."""
    from serverless_bench.cli.job import Output
    from serverless_bench.settings.names import setting_names

    return _OF_SERIES | set(map(spelled, (*setting_names(), *Output.__slots__)))


def as_flag(name: str) -> str:
    """Return the flag of a setting, or another name in backquotes."""
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
