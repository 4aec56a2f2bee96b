"""``sbench demo``: a demonstration of write, read, report and plot in half a minute."""

from pathlib import Path
from typing import Any

import click

from serverless_bench.base.units import format_count
from serverless_bench.cli.flags.of_jobs import common_options, settings
from serverless_bench.cli.flags.options import check_one_document, keep_option, new_name, option
from serverless_bench.cli.job import perform, prepare
from serverless_bench.cli.output.terminal import say, working
from serverless_bench.job.meaning import declared_in
from serverless_bench.job.settings import JobSettings


@click.command("demo")
@settings("number", "mb", "prefix")
@option(
    "--read-times", type=int, default=4, help=declared_in(JobSettings)["read_times"].meaning.what
)
@keep_option
@common_options
def command(*, keep: bool, **flags: Any) -> int:
    """Write objects, read them back, report on both runs and plot them.

    By default 16 functions write 1 GiB to the embedded store, which starts automatically, and
    read it four times.
    """
    from serverless_bench.driver.clean import clean
    from serverless_bench.features.plot.picture import figure

    check_one_document(flags["format"])
    name = new_name("demo", flags["name"])
    writing = prepare("write", {**flags, "name": f"{name}-write"})
    with writing.checked.open_target() as target:
        wrote, code = perform(writing, target)
        keys, runs = wrote.keys(), [wrote]
        if keys:
            named = {**flags, "name": f"{name}-read", "number": None}
            read, code_of_read = perform(prepare("read", named, keys), target)
            runs.append(read)
            code = code or code_of_read
        if not keep:
            with working(f"deleting {format_count(len(keys), 'object')}"):
                clean(wrote)
    picture = Path(runs[-1].path) / "plot.png"
    with working("drawing the picture"):
        figure(runs).save(picture)
    say(f"plot: {picture}", err=writing.quiet)
    return code
