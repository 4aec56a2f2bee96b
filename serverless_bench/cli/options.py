"""The flags, declared once; commands pick the groups that they need."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.target import Addressing
from serverless_bench.job.transfer import Stat, Verify

F = TypeVar("F", bound=Callable[..., Any])

OLD_SPELLINGS: Final = {
    "bucket-name": "bucket",
    "key-prefix": "prefix",
    "mb-per-file": "mb",
    "outdir": "run-dir",
    "outfile": "pickle",
    "s3-key": "key",
}
"""PyWren's and Lithops' flags; underscores are hyphens everywhere."""

DEFAULT_RUN_DIR: Final = Path("sbench-runs")


def spelled(token: str) -> str:
    """Return today's spelling of a flag, a command or a key of ``sbench.toml``."""
    hyphened = token.replace("_", "-")
    return OLD_SPELLINGS.get(hyphened, hyphened)


def option(flag: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's own
    """Declare a flag that an environment variable may set, too."""
    variable = "SBENCH_" + flag.removeprefix("--").replace("-", "_").upper()
    return click.option(flag, envvar=variable, **settings)


def group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator that declares ``options`` in their order."""

    def decorate(command: F) -> F:
        for declare in reversed(options):
            command = declare(command)
        return command

    return decorate


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
    ) -> list[CompletionItem]:
        """Return the names that begin so."""
        del ctx, param
        return [CompletionItem(name) for name in self._names() if name.startswith(incomplete)]


def _clients() -> list[str]:
    from serverless_bench.clients import CLIENTS

    return CLIENTS.names()


def _executors() -> list[str]:
    from serverless_bench.executors import EXECUTORS

    return EXECUTORS.names()


def _reporters() -> list[str]:
    from serverless_bench.reporters import REPORTERS

    return REPORTERS.names()


bucket_option = option(
    "--bucket", help="Bucket; without it, and without an endpoint, a store starts here."
)
addressing_options = group(
    option("--region", help="Where the bucket lives; found out if not given."),
    option(
        "--addressing",
        type=click.Choice([a.value for a in Addressing]),
        default=Addressing.AUTO.value,
        show_default=True,
        help="Bucket in the host name or in the path.",
    ),
)

target_options = group(
    bucket_option,
    option(
        "--endpoint-url",
        help="Any S3-compatible store; AWS if only a bucket is named. Of several, with commas"
        " between them, functions take turns.",
    ),
    addressing_options,
    option(
        "--client",
        type=PluginName(_clients),
        default="wire",
        show_default=True,
        help="Library that moves the bytes.",
    ),
    option(
        "--client-option",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of that library; docs/clients.md has them.",
    ),
)

transfer_options = group(
    option(
        "--connections",
        type=int,
        default=1,
        show_default=True,
        help="Connections of each function.",
    ),
    option("--part-mb", type=int, help="MiB of a part or range; whole objects without it."),
    option("--block-kib", type=int, default=1024, show_default=True, help="KiB moved at a time."),
    option(
        "--verify",
        type=click.Choice([v.value for v in Verify]),
        default=Verify.FULL.value,
        show_default=True,
        help="How much of what is read is compared.",
    ),
    option(
        "--retries",
        type=int,
        default=4,
        show_default=True,
        help="Further attempts of a request that failed for a passing reason.",
    ),
    option(
        "--timeout",
        type=float,
        default=60.0,
        show_default=True,
        help="Seconds without a byte that end an attempt.",
    ),
    option("--min-split-mb", type=float, help="MiB; smaller objects are read whole."),
    option(
        "--stat",
        type=click.Choice([s.value for s in Stat]),
        default=Stat.KEY.value,
        show_default=True,
        help="How sizes are learned before a read: from the key, by a HEAD each, or all before.",
    ),
)

load_options = group(
    option(
        "--threads",
        type=int,
        default=1,
        show_default=True,
        help="Operations at once, in each function.",
    ),
    option(
        "--rate",
        type=float,
        help="Operations due per second, of the functions that run at once (open loop).",
    ),
    option(
        "--arrivals",
        type=click.Choice(["uniform", "poisson"]),
        default="uniform",
        show_default=True,
        help="When they begin, with --rate.",
    ),
)
"""How a function goes through its operations."""

object_options = group(
    option("--sizes", help="Distribution of sizes, as in loguniform:4KiB:64MiB; docs/payload.md."),
    option(
        "--layout",
        default="random",
        show_default=True,
        help="Keys: random, sharded:N or sequential.",
    ),
    option(
        "--compressibility",
        type=float,
        default=1.0,
        show_default=True,
        help="How many times smaller a compressor makes the bytes.",
    ),
    option(
        "--duplication",
        type=float,
        default=1.0,
        show_default=True,
        help="How often each 4 KiB block stands in an object.",
    ),
)
"""What new objects are like."""

port_option = option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on; a free one without it.",
)

link_option = option(
    "--link", help="What the network carries at most, as in 20Gbit: more is not believed."
)

remote_options = group(
    option("--stack", help="What `sam deploy` made: its function, its buckets."),
    option(
        "--function", multiple=True, help="Deployed function to invoke; several share the load."
    ),
    option(
        "--control-prefix",
        help=f"Where functions leave records: PREFIX or s3://BUCKET/PREFIX.  [{CONTROL_PREFIX}]",
    ),
    option(
        "--start-timeout",
        type=float,
        default=60.0,
        show_default=True,
        help="Seconds after which a function that has not begun is launched again.",
    ),
)
"""For executors whose functions are remote."""

prices_option = option(
    "--prices",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Price file; the one that comes with sbench without it.",
)

cost_options = group(
    option("--max-cost", type=float, help="Dollars; a job that would cost more is refused."),
    prices_option,
    option(
        "--memory", type=int, help="MB of a function, for its cost.  [default: the function's own]"
    ),
    option(
        "--arch",
        type=click.Choice(["arm64", "x86_64"]),
        help="Processor of the functions, for their cost.  [default: their own]",
    ),
)
"""For executors whose functions are billed."""

run_dir_option = option(
    "--run-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_RUN_DIR,
    show_default=True,
    help="Directory of the runs.",
)
executor_type = PluginName(_executors)

run_options = group(
    option(
        "--executor",
        type=executor_type,
        default="local",
        show_default=True,
        help="Where functions run.",
    ),
    option("--concurrency", type=int, help="Functions at once; see docs/executors.md."),
    option(
        "--deadline",
        type=float,
        default=900.0,
        show_default=True,
        help="Seconds after which a function stops by itself.",
    ),
    option("--duration", type=float, help="Seconds to go through the objects again and again."),
    option(
        "--warm-up",
        type=int,
        default=0,
        show_default=True,
        help="Rounds through the objects that come first and do not count.",
    ),
    option("--gate", type=float, help="Begin together, once this share of functions is there."),
    option(
        "--gate-timeout",
        type=float,
        default=60.0,
        show_default=True,
        help="Seconds after which the gate opens, whoever is there.",
    ),
    link_option,
    option("--seed", type=int, default=0, show_default=True, help="Seed of everything random."),
    run_dir_option,
    option("--name", help="Name of the run directory; a time stamp without it."),
    remote_options,
    cost_options,
)

pickle_option = option(
    "--pickle",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write PyWren's list of (start, stop, MB/s).",
)

ceiling_option = option(
    "--ceiling", is_flag=True, help="Also run a few GB against a store that keeps nothing."
)


def choose_format(*styles: str) -> Callable[[F], F]:
    """Declare ``--format`` for a command that is no report of a run."""
    return option(
        "--format",
        type=click.Choice(styles),
        default="text",
        show_default=True,
        help="How to show the result.",
    )


format_option = option(
    "--format",
    type=PluginName(_reporters),
    default="text",
    show_default=True,
    help="How to show the result.",
)
