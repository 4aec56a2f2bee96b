"""``sbench demo``: the whole tool in half a minute."""

import secrets
from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.job import perform, prepare
from serverless_bench.cli.options import (
    format_option,
    option,
    run_options,
    target_options,
    transfer_options,
)
from serverless_bench.cli.plot import require_plots, save_figure
from serverless_bench.cli.terminal import working
from serverless_bench.clock import utc_stamp
from serverless_bench.job.defaults import DEFAULT_MB, DEFAULT_PREFIX, USUAL_NUMBER
from serverless_bench.units import format_count


@click.command("demo")
@option("--number", type=int, default=USUAL_NUMBER, show_default=True, help="Functions.")
@option("--mb", type=int, help=f"Size of an object in MiB.  [default: {DEFAULT_MB}]")
@option("--read-times", type=int, default=4, show_default=True, help="Reads of each object.")
@option("--prefix", default=DEFAULT_PREFIX, show_default=True, help="Goes before every random key.")
@option("--keep", is_flag=True, help="Leave the objects in the store.")
@target_options
@transfer_options
@run_options
@format_option
def command(*, keep: bool, **flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Write objects, read them back, report on both and draw them.

    Without flags: 16 functions write 1 GiB to a store that starts by itself, and read it
    four times over.
    """
    from serverless_bench.driver.cleanup import delete

    require_plots()
    name = flags["name"] or f"{utc_stamp()}-demo-{secrets.token_hex(2)}"
    writing = prepare("write", {**flags, "name": f"{name}-write"})
    with writing.checked.open_target() as target:
        wrote = perform(writing, target)
        keys = wrote.run.keys()
        runs, code = [wrote.run], wrote.exit_code
        if keys:
            named = {**flags, "name": f"{name}-read", "number": None}
            read = perform(prepare("read", named, keys), target)
            runs.append(read.run)
            code = code or read.exit_code
        if not keep:
            with working(f"deleting {format_count(len(keys), 'object')}"):
                delete(target, wrote.run.ledger())
    picture = Path(runs[-1].path) / "figure.png"
    with working("drawing the picture"):
        save_figure(runs, picture)
    click.echo(f"figure: {picture}", err=writing.quiet)
    return code
