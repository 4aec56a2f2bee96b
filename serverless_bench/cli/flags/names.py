"""Names of settings on the command line and in files, for messages that name a setting."""

import re
from collections.abc import Sequence
from typing import Any, Final

import click
from click.core import ParameterSource

from serverless_bench.base.errors import SbenchError, nearest

FILES: Final = "sbench.files"
"""Key in the meta data of click's context for the settings file of each parameter."""

_NUMBERS: Final = {"integer": "a whole number", "float": "a number"}
_NO_NUMBER: Final = re.compile(r"a valid (integer|float)(?: range)?$")
"""Names of numbers in messages of click."""
OLD_SPELLINGS: Final = {
    "bucket-name": "bucket",
    "key-prefix": "prefix",
    "mb-per-file": "mb",
    "outdir": "run-dir",
    "outfile": "pickle",
    "s3-key": "key",
}
"""Flags of PyWren and Lithops, with hyphens instead of underscores."""


class SettingOption(click.Option):
    """Flag of a setting, with the section of the help.

    Parameters
    ----------
    words, section, attributes
        Spellings, section, and arguments of the class of click.
    """

    def __init__(self, words: Sequence[str], *, section: str, **attributes: Any) -> None:
        super().__init__(words, **attributes)
        self.section = section


def spelled(token: str) -> str:
    """Return the current spelling of a flag, a command or a key of ``sbench.toml``."""
    hyphened = token.replace("_", "-")
    return OLD_SPELLINGS.get(hyphened, hyphened)


def well_known() -> frozenset[str]:
    """Return the spelling of the flags of jobs, which are most of the shared flags."""
    from serverless_bench.cli.job import Output
    from serverless_bench.job.setting_names import setting_names

    return frozenset(map(spelled, (*setting_names(), *Output.__slots__)))


def arguments() -> frozenset[str]:
    """Return the spelling of the settings that commands have as arguments in place of flags."""
    from serverless_bench.job.setting_names import declared

    settings = declared().items()
    return frozenset(spelled(name) for name, (*_, about) in settings if about.is_argument)


def as_flag(name: str) -> str:
    """Return the flag of a setting, or of the command that runs; another name in backquotes."""
    flag, context = spelled(name), click.get_current_context(silent=True)
    parameters = context.command.params if context else ()
    own = {each.name for each in parameters if isinstance(each, click.Option)}
    return f"--{flag}" if name in own or flag in well_known() else f"`{name}`"


def as_key(name: str) -> str:
    """Return the key of a setting in a file."""
    return as_flag(name).removeprefix("--")


def with_flags(text: str) -> str:
    """Return a text with flags in place of settings, and ``pip install`` as it works here."""
    from serverless_bench.job.setting_schema import renamed

    if "pip install" in text:
        from serverless_bench.cli.output.installing import fitted

        text = fitted(text)
    return renamed(text, as_flag)


def given_as(parameter: click.Parameter, context: click.Context) -> str:
    """Return where the user gave a value: the flag, the variable, or the key of a settings file."""
    name = str(parameter.name)
    source = context.get_parameter_source(name)
    if source is ParameterSource.DEFAULT_MAP:
        return f"{context.meta.get(FILES, {}).get(name, 'sbench.toml')}: {spelled(name)}"
    variable = parameter.envvar if source is ParameterSource.ENVIRONMENT else None
    return str(variable or max(parameter.opts, key=len))


def spell(error: SbenchError) -> None:
    """Put flags into the message and the hint of an error, in place of settings.

    The message of a wrong setting names the variable or the file that it came from.
    """
    from serverless_bench.job.setting_schema import renamed

    error.args = (renamed(str(error), _as_given),)
    error.hint = with_flags(error.hint)


def _as_given(name: str) -> str:
    """Return where the user gave a setting, or its flag."""
    context = click.get_current_context(silent=True)
    for parameter in context.command.params if context else ():
        if context and parameter.name == name and isinstance(parameter, click.Option):
            return given_as(parameter, context)
    return as_flag(name)


def message_of(error: click.ClickException) -> str:
    """Return the message of an error of click as one line that names the origin of the value."""
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        # Hyphens at the start make any two flags similar.
        error.possibilities[:] = [
            flag
            for flag in error.possibilities
            if nearest(error.option_name.strip("-"), [flag.strip("-")], least=0.75)
        ]
    message = error.format_message()
    if type(error) is click.BadParameter and isinstance(error.param, click.Option) and error.ctx:
        problem = _NO_NUMBER.sub(lambda match: _NUMBERS[match[1]], error.message.rstrip("."))
        message = f"{given_as(error.param, error.ctx)}: {problem}"
    # Some messages of click have more than one line.
    return " ".join(message.split())
