"""How flags are declared, and those that commands of several kinds have."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click

from serverless_bench.aws.lambda_network import BASE_MBPS
from serverless_bench.driver.live.display import Style
from serverless_bench.errors import ArchiveError, UsageError
from serverless_bench.plugins import extra
from serverless_bench.reporters import REPORTERS
from serverless_bench.units import parse_share

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_RUN_DIR: Final = Path("sbench-runs")
FILE: Final = click.Path(dir_okay=False, path_type=Path)
PAGE: Final = "html"
"""The format that is a page for a browser."""
FOLDER: Final = click.Path(file_okay=False, path_type=Path)


def option(flag: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's own
    """Declare a flag that an environment variable may set, too; help shows its default."""
    name = flag.partition("/")[0].removeprefix("--")
    variable = "SBENCH_" + name.replace("-", "_").upper()
    return click.option(flag, envvar=variable, **{"show_default": True, **settings})


class HarmlessOption(click.Option):
    """Flag that a settings file may set which the user does not trust: see ``Harmless``."""


def harmless(flag: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's own
    """Declare a flag that is harmless whatever its value, as ``driver.meaning`` defines it."""
    return option(flag, cls=HarmlessOption, **settings)


def group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator that declares ``options`` in their order."""

    def decorate(command: F) -> F:
        for declare in reversed(options):
            command = declare(command)
        return command

    return decorate


class Share(click.ParamType):  # type: ignore[type-arg] # as PluginName
    """A share of a whole: ``5%`` or ``0.05``."""

    name = "share"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number."""
        del ctx
        return parse_share("a share," if param is None else param.opts[0], str(value), below=1.0)


class Size(click.ParamType):  # type: ignore[type-arg] # as PluginName
    """A size: text with a unit, or whole bytes from a file; read where the job is made."""

    name = "size"


class PluginName(click.ParamType):  # type: ignore[type-arg] # generic in click 8.5 alone
    """A name of a family of plugins: help and the shell show those that there are.

    Whether it is one is for the family to say: other packages bring names of their own.

    Parameters
    ----------
    names
        Returns every name that a user may type.
    """

    name = "name"

    def __init__(self, names: Callable[[], list[str]]) -> None:
        self._names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the names, as click shows a choice."""
        del param, ctx
        return f"[{'|'.join(self._names())}]"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the names that begin so."""
        from click.shell_completion import CompletionItem

        del ctx, param
        return [CompletionItem(name) for name in self._names() if name.startswith(incomplete)]


def check_unused(directory: Path) -> None:
    """Refuse the name of a series that is taken: its runs would lie beside others.

    Raises
    ------
    ArchiveError
        If the directory exists.
    """
    if directory.exists():
        raise ArchiveError(f"{directory} is there already", hint="choose another --name")


def new_name(kind: str, given: str | None = None) -> str:
    """Return the name for the directory of what a command makes.

    Parameters
    ----------
    kind
        What is made.
    given
        What the user says; None or empty for a name of its own.

    Raises
    ------
    UsageError
        If the user's is no name.
    """
    if given:
        from serverless_bench.settings.schema import check_name

        check_name(given)
        return given
    import secrets

    from serverless_bench.clock import utc_stamp

    return f"{utc_stamp()}-{kind}-{secrets.token_hex(2)}"


def check_one_document(style: str) -> None:
    """Refuse a format that is one document, for a command that reports on several runs.

    Raises
    ------
    UsageError
        If it is one.
    """
    if style == "html":
        raise UsageError(
            "html is a page of one run, and this makes several",
            hint="sbench report RUN --format html > page.html, when they are there",
        )


port_option = harmless(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=False,
    help="Port to listen on; a free one without it.",
)

prices_option = option(
    "--prices",
    type=FILE,
    metavar="FILE|REGION",
    help="Price file, or a region whose prices count.  [default: those of the job's region that"
    " `sbench aws prices` keeps, or of us-east-1]",
)


class Choice(click.Choice):  # type: ignore[type-arg] # generic in newer click alone
    """One of several words, shown as it is documented: click alone shows the spelling of a flag."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        """Return the word that is meant, with hyphens or underscores."""
        meant = super().normalize_choice(choice, ctx)
        for one in self.choices:
            if super().normalize_choice(one, ctx) == meant:
                return str(one)
        return meant


network_quota_option = harmless(
    "--network-quota",
    type=click.FloatRange(min=BASE_MBPS),
    metavar="MBPS",
    show_default=False,
    help="The account's quota for the network of one function."
    f"  [default: {BASE_MBPS:g}, which every account has]",
)

run_dir_option = option(
    "--run-dir", type=FOLDER, default=DEFAULT_RUN_DIR, help="Directory of the runs."
)


def _from_hand(ctx: click.Context, param: click.Parameter, value: Any) -> Any:  # noqa: ANN401 - click's own
    source = ctx.get_parameter_source(str(param.name))
    if source is click.core.ParameterSource.DEFAULT_MAP:
        raise UsageError(
            f"sbench.toml must not say --{param.name}", hint="it is said each time, by hand"
        )
    return value


trust_option = click.option(
    "--trust",
    is_flag=True,
    callback=_from_hand,
    help="Use the store, functions and directories that RUN names, though it was not made here.",
)

display_options = (
    harmless(
        "--progress",
        type=Choice(get_args(Style)),
        default="auto",
        help="What standard error shows of a run under way: bar, a live view on a terminal; plain,"
        " a line every 5 s; auto, the view, and elsewhere a line every 10 s.",
    ),
    option(
        "--metrics",
        default="",
        show_default=False,
        metavar="FILE|[HOST]:PORT",
        help="Have metrics for Prometheus in a file, or on a port of this machine.",
    ),
)

keep_option = harmless("--keep", is_flag=True, help="Leave the objects in the store.")


def choose_format(*styles: str) -> Callable[[F], F]:
    """Declare ``--format`` for a command that is no report of a run."""
    return harmless(
        "--format",
        type=click.Choice(styles),
        default="text",
        callback=_with_library,
        help="How to show the result.",
    )


def _with_library(ctx: click.Context, param: click.Parameter, style: str) -> str:
    """Return a format; before anything runs whose end is a page, check that one can be made."""
    del ctx, param
    if style == PAGE:
        with extra(PAGE, f"--format {PAGE}"):
            import_module("vl_convert")
    return style


format_option = harmless(
    "--format",
    type=PluginName(REPORTERS.names),
    default="text",
    help="How to show the result.",
)
