"""``sbench convert``."""

from pathlib import Path

import click

from serverless_bench.cli.job import check_writable
from serverless_bench.cli.options import option
from serverless_bench.converters import CONVERTERS, open_converter
from serverless_bench.errors import UsageError


@click.command("convert")
@click.argument("tool", metavar=f"[{'|'.join(CONVERTERS)}]")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The job file; standard output without it.",
)
@option(
    "--threads",
    type=int,
    default=1,
    show_default=True,
    help="Of the operations in flight there, how many one function takes here.",
)
def command(tool: str, file: Path, output: Path | None, threads: int) -> int:
    """Make a job file of a configuration of warp (`warp run`) or sai3-bench.

    What has no equivalent stands as a comment at the top of the job file, and is printed.
    """
    from serverless_bench.cli.stages import steps_of
    from serverless_bench.jobfile import dump_job_file

    convert = open_converter(tool)
    if threads < 1:
        raise UsageError(f"--threads must be at least 1, got {threads}")
    check_writable("--output", output)
    converted = convert(file, threads=threads)
    # A job file that would be refused is no use: this says so, and why.
    steps_of(converted.job, {})
    remarks = [f"Made by sbench convert {tool} of {file.name}; run it with: sbench run FILE"]
    if converted.notes:
        remarks += ["", "What is different here:", *(f"  {note}" for note in converted.notes)]
    text = dump_job_file(converted.job, remarks)
    for note in converted.notes:
        click.echo(f"note: {note}", err=True)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        click.echo(f"wrote {output}; sbench run {output} --dry-run shows what it does")
    return 0
