"""``sbench convert``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from serverless_bench.cli.flags.options import FILE, harmless
from serverless_bench.cli.job import check_writable
from serverless_bench.cli.output.terminal import note, say
from serverless_bench.errors import UsageError
from serverless_bench.formats.converters import CONVERTERS, open_converter
from serverless_bench.formats.converters.reading import load_yaml

_KEYS: Final[Mapping[str, str]] = {"warp": "warp", "workload": "sai3"}
"""What a file of each tool has at its top."""


@click.command("convert")
@click.argument("words", nargs=-1, required=True, metavar=f"[{'|'.join(CONVERTERS)}] FILE")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="The job file; standard output without it.",
)
@harmless(
    "--threads",
    type=int,
    default=1,
    help="Of the operations in flight there, how many one function takes here.",
)
def command(words: tuple[str, ...], output: Path | None, threads: int) -> None:
    """Make a job file of a configuration of warp (`warp run`) or sai3-bench.

    Which of them FILE is of shows by itself; the name of the tool may stand before it. What has
    no equivalent stands as a comment at the top of the job file, and is printed.
    """
    from serverless_bench.cli.nested import steps_of
    from serverless_bench.settings.job_file import dump_job_file

    tool, file = _tool_and_file(words)
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
    note(converted.notes)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        say(f"wrote {output}; sbench run {output} --dry-run shows what it does")


def _tool_and_file(words: Sequence[str]) -> tuple[str, Path]:
    """Return which tool a file is of, as the user says or as it looks, and the file.

    Raises
    ------
    UsageError
        If there are more words, or the file looks like none of the tools'.
    """
    *tools, name = words
    if not tools and name in CONVERTERS:
        raise UsageError(f"sbench convert {name} needs a file", hint="sbench convert FILE")
    if len(tools) > 1:
        raise UsageError("one file is converted at a time", hint="sbench convert FILE")
    if tools:
        return tools[0], Path(name)
    document = load_yaml(Path(name))
    for key, tool in _KEYS.items():
        if key in document:
            return tool, Path(name)
    raise UsageError(
        f"{name} is a file of no tool that is known: it has neither {' nor '.join(_KEYS)}"
        " at its top",
        hint=f"sbench convert {'|'.join(CONVERTERS)} FILE says which it is meant to be",
    )
