"""``sbench aws``: what an AWS account needs for sbench's functions."""

import click

from serverless_bench.aws.stack.template import (
    DEFAULT_ARCHITECTURES,
    DEFAULT_MEMORY,
    DEFAULT_RUNTIME,
    RUNTIMES,
    template,
)
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.help import Group
from serverless_bench.cli.options import option
from serverless_bench.job.types import wrong


@click.group("aws", cls=Group)
def command() -> None:
    """Write what `sam build` and `sam deploy` need; docs/aws.md."""


@command.command("template")
@option(
    "--memory",
    default=",".join(map(str, DEFAULT_MEMORY)),
    metavar="MB[,...]",
    help="Memory sizes of the functions; jobs that ask for none get the first.",
)
@option(
    "--arch",
    default=",".join(DEFAULT_ARCHITECTURES),
    metavar="NAME[,...]",
    help="Their processors, arm64 or x86_64; jobs that ask for none get the first.",
)
@option(
    "--copies",
    type=click.IntRange(min=1),
    default=1,
    help="Functions of each kind, which share the load.",
)
@option(
    "--runtime",
    type=click.Choice(RUNTIMES),
    default=DEFAULT_RUNTIME,
    help="Python of the functions.",
)
def template_command(memory: str, arch: str, copies: int, runtime: str) -> int:
    """Write the template of a stack that has a function of every size and processor.

    It goes to standard output: keep it in the root of the repository, where what it names is.
    """
    text = template(_sizes(memory), arch.split(","), copies=copies, runtime=runtime)
    click.echo(text, nl=False)
    return ExitCode.OK


def _sizes(text: str) -> list[int]:
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise wrong("memory", f"is whole numbers with commas between, got {text!r}") from None
