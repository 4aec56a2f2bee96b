"""``sbench aws``: what an AWS account needs for sbench's functions."""

from pathlib import Path

import click

from serverless_bench.aws.stack.folder import write_folder
from serverless_bench.aws.stack.template import (
    DEFAULT_ARCHITECTURES,
    DEFAULT_MEMORY,
    DEFAULT_RUNTIME,
    RUNTIMES,
    template,
)
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import FILE, FOLDER, harmless, option
from serverless_bench.cli.output.help import Group
from serverless_bench.cli.output.terminal import say
from serverless_bench.settings.texts import read_numbers


@click.group("aws", cls=Group)
def command() -> None:
    """Write what `sam build` and `sam deploy` need; docs/aws.md."""


@command.command("stack")
@click.argument("folder", type=FOLDER, default="sbench-stack")
@harmless(
    "--memory",
    default=",".join(map(str, DEFAULT_MEMORY)),
    metavar="MB[,...]",
    help="Memory sizes of the functions; jobs that ask for none get the first.",
)
@harmless(
    "--arch",
    default=",".join(DEFAULT_ARCHITECTURES),
    metavar="NAME[,...]",
    help="Their processors, arm64 or x86_64; jobs that ask for none get the first.",
)
@harmless(
    "--copies",
    type=click.IntRange(min=1),
    default=1,
    help="Functions of each kind, which share the load.",
)
@harmless(
    "--runtime",
    type=click.Choice(RUNTIMES),
    default=DEFAULT_RUNTIME,
    help="Python of the functions.",
)
def stack_command(folder: Path, memory: str, arch: str, copies: int, runtime: str) -> None:
    """Write a stack into FOLDER: template, recipe and code of functions of every size.

    FOLDER is sbench-stack if none is named. There `sam build` and `sam deploy` do the rest.
    """
    architectures = arch.split(",")
    write_folder(
        folder,
        template([*read_numbers("memory", memory)], architectures, copies=copies, runtime=runtime),
    )
    say(f"stack: {folder}; in it, sam build && sam deploy")


@command.command("prices")
@settings("region", region="Whose prices.  [default: the AWS configuration's]")
@option(
    "--file",
    type=FILE,
    multiple=True,
    help="Offer file of a service that you downloaded from AWS, for each once; without them the"
    " account is asked.",
)
def prices_command(region: str | None, file: tuple[Path, ...]) -> None:
    """Keep the prices of a region, from AWS's price list.

    `plan`, `--max-cost` and bills use them for jobs of that region. It takes the permission
    pricing:GetProducts, or offer files, and writes into sbench's folder of your configuration.
    """
    from serverless_bench.aws.cost.price_list import regional_prices
    from serverless_bench.aws.cost.prices import load_prices, own_table
    from serverless_bench.driver.boto import configured_region
    from serverless_bench.user_files import refusing

    region = region or configured_region()
    text, missing = regional_prices(region, file)
    path = own_table(region)
    with refusing(path, "or write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    say(f"prices of {region}, in AWS's list of {load_prices(path).as_of}: {path}")
    if missing:
        say(f"not in the list, so those of us-east-1: {', '.join(missing)}")
