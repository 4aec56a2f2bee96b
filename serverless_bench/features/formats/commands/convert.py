"""``sbench convert``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.options import FILE, option
from serverless_bench.cli.job import check_writable
from serverless_bench.cli.output.terminal import note, say
from serverless_bench.features.formats.converters import CONVERTERS, open_converter
from serverless_bench.features.formats.converters.reading import load_yaml

_WARP: Final = "warp"
"""Tool, and the top-level key of configurations that are no longer converted."""


@click.command("convert")
@click.argument("words", nargs=-1, required=True, metavar=f"[{'|'.join(CONVERTERS)}] FILE")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Job file to write.  [default: standard output]",
)
@option(
    "--threads",
    type=int,
    default=1,
    help="Concurrent operations of the other tool that a function performs.",
)
def command(words: tuple[str, ...], output: Path | None, threads: int) -> None:
    """Convert a configuration of sai3-bench to a job file.

    Differences are printed, and listed in a comment at the top of the job file. A file with a
    field that has no equivalent is refused.
    """
    from serverless_bench.features.stages.job_file import dump_job_file
    from serverless_bench.features.stages.prepared import steps_of
    from serverless_bench.rundir.files import replacing

    tool, file = _tool_and_file(words)
    convert = open_converter(tool)
    if threads < 1:
        raise UsageError(f"--threads must be at least 1, got {threads}")
    check_writable("--output", output)
    converted = convert(file, threads=threads)
    # Check the job file now, so that errors are reported here rather than by `sbench run`.
    steps_of(converted.job, {})
    remarks = [f"Made by sbench convert {tool} from {file.name}; run it with: sbench run FILE"]
    if converted.notes:
        remarks += ["", "Differences:", *(f"  {note}" for note in converted.notes)]
    text = dump_job_file(converted.job, remarks)
    note(converted.notes)
    if output is None:
        click.echo(text, nl=False)
    else:
        with replacing(output) as made:
            made.write(text.encode())
        say(f"wrote {output}; preview it with: sbench run {output} --dry-run")


def _tool_and_file(words: Sequence[str]) -> tuple[str, Path]:
    """Return the tool of a file, sai3 unless the command line names another, and the path.

    Raises
    ------
    UsageError
        If there are too many words, or the file belongs to warp.
    """
    *tools, name = words
    if not tools and name in {*CONVERTERS, _WARP}:
        raise UsageError(f"sbench convert {name} needs a file", hint="sbench convert FILE")
    if len(tools) > 1:
        raise UsageError("cannot convert more than one file at a time", hint="sbench convert FILE")
    if tools == [_WARP] or (not tools and _WARP in load_yaml(Path(name))):
        raise UsageError(
            f"{name}: configurations of warp are not converted",
            hint="write the job as flags, or as a job file as in sbench examples stages.toml",
        )
    return (tools or ["sai3"])[0], Path(name)
