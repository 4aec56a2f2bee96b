"""``sbench plan --simulate COMMAND``: simulated run directory of a command."""

from typing import TYPE_CHECKING

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.job import Prepared
from serverless_bench.features.simulation.simulated_run import simulate
from serverless_bench.rundir.files import write_key_file

if TYPE_CHECKING:
    from pathlib import Path

    from serverless_bench.features.cost.outlook import JobPlan


def simulate_plan(planned: "JobPlan", prepared: Prepared) -> "Path":
    """Write a run directory as if a planned command had run, and return it.

    Raises
    ------
    UsageError
        If a flag cannot be simulated.
    """
    output = prepared.output
    for flag, value in (
        *((f"--{name}", value) for name, value in output.more.items()),
        ("--max-cost", output.max_cost),
    ):
        if value:
            raise UsageError(
                f"{flag} is not simulated",
                hint='omit it; see "Simulation" in the documentation',
            )
    run = simulate(
        planned.job,
        prepared.directory,
        model=planned.model,
        keys=prepared.keys,
        deployed=planned.conditions,
    )
    if output.key_file is not None:
        write_key_file(output.key_file, run.keys())
    return run.path
