"""Flags: their declaration and their names in messages, and those that groups of commands share."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click
from click.core import ParameterSource

from serverless_bench.base.errors import SbenchError, UsageError, nearest
from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import parse_duration, parse_rate, parse_share, parse_size
from serverless_bench.driver.policy import Style
from serverless_bench.job.defaults import REMOTE
from serverless_bench.report import REPORTERS
from serverless_bench.rundir.listing import DEFAULT_ROOT

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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
    words, section, after, attributes
        Spellings, section, flags before it there, and arguments of the class of click.
    """

    def __init__(
        self, words: Sequence[str], *, section: str, after: str = "", **attributes: Any
    ) -> None:
        super().__init__(words, **attributes)
        self.section, self.after = section, after


def spelled(token: str) -> str:
    """Return the current spelling of a flag, a command or a key of ``sbench.toml``."""
    hyphened = token.replace("_", "-")
    return OLD_SPELLINGS.get(hyphened, hyphened)


def well_known() -> frozenset[str]:
    """Return the spelling of the flags of jobs, which are most of the shared flags."""
    from serverless_bench.cli.flags.after_run import AFTER_RUN
    from serverless_bench.cli.job import Output
    from serverless_bench.job.settings import setting_names

    return frozenset(map(spelled, (*setting_names(), *Output.__slots__, *AFTER_RUN)))


def arguments() -> frozenset[str]:
    """Return the spelling of the settings that commands have as arguments in place of flags."""
    from serverless_bench.job.settings import declared

    settings = declared().items()
    return frozenset(spelled(name) for name, (*_, about) in settings if about.is_argument)


def as_flag(name: str) -> str:
    """Return the flag of a setting, or of the command that runs; another name in backquotes."""
    flag, context = spelled(name), click.get_current_context(silent=True)
    parameters = context.command.params if context else ()
    own = {each.name for each in parameters if isinstance(each, click.Option)}
    return f"--{flag}" if name in own or flag in well_known() else f"`{name}`"


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


F = TypeVar("F", bound=Callable[..., Any])

FILE: Final = click.Path(dir_okay=False, path_type=Path)
PAGE: Final = "html"
"""Format for a page in a browser."""
FOLDER: Final = click.Path(file_okay=False, path_type=Path)


def option(flag: str, **settings: Any) -> Callable[[F], F]:
    """Declare a flag with an environment variable; the help shows the default."""
    variable = variable_of(flag.partition("/")[0].removeprefix("--"))
    default = settings.get("default")
    if settings.get("type") is DURATION and isinstance(default, float):
        # As a user types it, with its unit.
        settings["default"] = f"{default * 1000:g}ms" if 0 < default < 1 else f"{default:g}s"
    return click.option(flag, envvar=variable, **{"show_default": True, **settings})


def variable_of(flag: str) -> str:
    """Return the environment variable of a flag, given without its hyphens."""
    return f"SBENCH_{flag.replace('-', '_').upper()}"


def group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that declares ``options`` in the given order."""

    def decorate(command: F) -> F:
        for declare in reversed(options):
            command = declare(command)
        return command

    return decorate


class Parsed(click.ParamType):  # type: ignore[type-arg] # generic in click 8.5 alone
    """Value that a function makes from text; an error names where the text came from.

    Parameters
    ----------
    name
        Kind of the value.
    parse
        Takes the text.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the value."""
        try:
            return self._parse(str(value))
        except SbenchError as exc:
            if param and ctx:
                exc.args = (f"{given_as(param, ctx)}: {exc}",)
            raise


SHARE: Final = Parsed("share", parse_share)
"""Fraction from 0 to 1: ``5%`` or ``0.05``."""
TOLERANCE: Final = Parsed("share", partial(parse_share, below=1.0))
"""Share that is neither 0 nor 1."""
DURATION: Final = Parsed("duration", parse_duration)
"""Duration in seconds or with units: ``5``, ``500ms``, ``2m``, ``1h30m``."""
SIZE: Final = Parsed("size", parse_size)
"""Size in bytes or with a unit: ``1000``, ``64MiB``, ``2GB``."""
RATE: Final = Parsed("rate", parse_rate)
"""Bytes or bits per second: ``20MiB``, ``2.5GB/s``, ``20Gbit``."""


class PluginName(Parsed):
    """Name of a plugin, with the available names in the help and in shell completion.

    Parameters
    ----------
    family
        The plugins.
    """

    def __init__(self, family: Registry[Any]) -> None:
        super().__init__("name", family.checked)
        self._family = family

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the names in the format of a choice of click."""
        return f"[{'|'.join(self._family.names())}]"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the names with this prefix."""
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name) for name in self._family.names() if name.startswith(incomplete)
        ]


def new_name(kind: str, given: str | None = None) -> str:
    """Return the name of the directory for the result of a command.

    Parameters
    ----------
    kind
        Kind of the result, for a generated name.
    given
        Name from the user; None or empty to generate a name.

    Raises
    ------
    UsageError
        If the name from the user is invalid.
    """
    from serverless_bench.job.keys import stamped_name
    from serverless_bench.job.setting_schema import check_name

    name = given or stamped_name(kind)
    check_name(name)
    return name


def check_one_document(style: str) -> None:
    """Check the format of a command that reports on more than one run.

    Raises
    ------
    UsageError
        If the format is a single document.
    """
    if style == "html":
        raise UsageError(
            "--format html is the report of a single run, but this command makes more than one",
            hint="run sbench report RUN --format html > report.html afterwards",
        )


port_option = option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=False,
    help="Port to listen on.  [default: a free port]",
)

prices_option = option(
    "--prices",
    cls=SettingOption,
    type=FILE,
    section=REMOTE,
    after="max-cost",
    metavar="FILE|REGION",
    help="Price file, or the region of the prices.  [default: those of the job's region that"
    " `sbench aws prices` keeps, or of us-east-1]",
)


class Choice(click.Choice):  # type: ignore[type-arg] # generic in newer click alone
    """Choice of words in their documented spelling; click would normalize them like flags."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        """Return the documented spelling of a word with hyphens or underscores."""
        normalized = super().normalize_choice(choice, ctx)
        for word in self.choices:
            if super().normalize_choice(word, ctx) == normalized:
                return str(word)
        return normalized


run_dir_option = option(
    "--run-dir", type=FOLDER, default=DEFAULT_ROOT, help="Directory of the runs."
)


def _from_hand(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    if ctx.get_parameter_source(str(param.name)) is click.core.ParameterSource.DEFAULT_MAP:
        raise UsageError(
            f"sbench.toml must not set --{param.name}",
            hint=f"give --{param.name} on the command line",
        )
    return value


trust_option = click.option(
    "--trust",
    is_flag=True,
    callback=_from_hand,
    help="Use the store, functions and directories of RUN, although it was not made here.",
)

progress_option = option(
    "--progress",
    type=Choice(get_args(Style)),
    default="auto",
    help="Display of a run in progress on standard error: bar, a live view on a terminal; plain,"
    " a line every 5 s; auto, the view, and elsewhere a line every 10 s.",
)

keep_option = option("--keep", is_flag=True, help="Leave the objects in the store.")


def choose_format(*styles: str) -> Callable[[F], F]:
    """Declare ``--format`` for a command that does not report on a run."""
    return option(
        "--format",
        type=click.Choice(styles),
        default="text",
        help="How to show the result.",
    )


format_option = group(
    option(
        "--format",
        type=PluginName(REPORTERS),
        default="text",
        help="How to show the result.",
    ),
    click.option("--full", "format", flag_value="full", help="Show all figures."),
)
