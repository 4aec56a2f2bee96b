"""``sbench plan --simulate COMMAND``: simulated run directory of a command.

If many requests are rejected, the end of a run depends on the longest random wait of any client:
a simulation is a single sample, like a run. Multiple simulations therefore show the range in
which another run is likely to lie.
"""

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import format_rate, format_seconds
from serverless_bench.cli.job import Prepared
from serverless_bench.cli.output.terminal import ExitCode, say, say_json
from serverless_bench.features.cost.planned_command import job_of, prepare_command
from serverless_bench.features.stages.series import check_unused

if TYPE_CHECKING:
    from serverless_bench.features.simulation.limits import Deployed
    from serverless_bench.features.simulation.model import Model
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.metrics.summary import Summary
    from serverless_bench.rundir.run import Run


_FIGURES: Final[Mapping[str, "Callable[[Summary], float | None]"]] = {
    "throughput_bytes_per_s": lambda summary: summary.throughput_bytes_per_s,
    "peak_1s_bytes_per_s": lambda summary: summary.peak_1s_bytes_per_s,
    "completion_s.p50": lambda summary: summary.completion_s["p50"],
    "completion_s.p99": lambda summary: summary.completion_s["p99"],
    "elapsed_s": lambda summary: summary.elapsed_s,
    "throttled": lambda summary: summary.attempt_stats.throttled,
}
FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "throughput_bytes_per_s": format_rate,
    "peak_1s_bytes_per_s": format_rate,
    "throttled": "{:.0f}".format,
}
"""Formats of results; the rest are in seconds."""


def simulate_command(
    words: Sequence[str], flags: Mapping[str, Any], account: Mapping[str, Any]
) -> int:
    """Write a run directory as if a command had run, and report on it.

    Parameters
    ----------
    words
        The command and its flags, as after ``sbench``; they determine the run directory.
    flags
        Flags of ``sbench plan``.
    account
        The fields of ``Deployed``.

    Raises
    ------
    UsageError
        If the command is unknown, or a flag is invalid or cannot be simulated.
    """
    from serverless_bench.features.simulation.limits import Deployed
    from serverless_bench.features.simulation.model import AWS_LAMBDA, load_model

    model = load_model(flags["model"] or AWS_LAMBDA.name)
    # Without Lambda there is no account, and no quota unless requested.
    quota = account["quota"] if model.function.on_lambda else flags["quota"]
    deployed = Deployed(**{**account, "quota": quota})
    prepared = prepare_command(words)
    _check_output(prepared, flags["runs"])
    from serverless_bench.features.simulation.demand import refuse_unknown

    refuse_unknown(prepared.job)
    if flags["runs"] > 1:
        return _simulate_repeatedly(prepared, flags, model, deployed)
    from serverless_bench.report import FOR_TERMINALS, open_reporter, write_report

    style = flags["format"]
    if style == "text":
        style = prepared.output.format or style
    reporter = open_reporter(style)
    run, summary = _simulated(
        job_of(prepared), prepared, prepared.directory, flags, model, deployed
    )
    say(f"run directory: {prepared.directory}", err=style not in FOR_TERMINALS)
    write_report(reporter, summary, run, sys.stdout)
    if prepared.output.key_file is not None:
        from serverless_bench.rundir.files import write_key_file

        write_key_file(prepared.output.key_file, run.keys())
    return summary.exit_code()


def _simulate_repeatedly(
    prepared: Prepared, flags: Mapping[str, Any], model: "Model", deployed: "Deployed"
) -> int:
    """Simulate a job with consecutive seeds, and report the range of the results."""
    job, root, count = job_of(prepared), prepared.directory, flags["runs"]
    in_json = "json" in {flags["format"], prepared.output.format}
    jobs = [replace(job, seed=job.seed + number) for number in range(count)]
    check_unused(root)
    say(f"run directories: {root / '1'} to {count}", err=in_json)
    summaries, code = [], int(ExitCode.OK)
    for number, seeded in enumerate(jobs):
        _, summary = _simulated(seeded, prepared, root / str(number + 1), flags, model, deployed)
        summaries.append(summary)
        code = code or summary.exit_code()
    ranges = spreads(summaries)
    # Probability that another run of the same kind lies between the lowest and the highest.
    chance = (count - 1) / (count + 1)
    if in_json:
        document = {
            "simulated": model.name,
            "runs": count,
            "first_seed": job.seed,
            "between": chance,
            "figures": ranges,
        }
        say_json(json.dumps(document))
        return code
    say(f"{job.workload}: SIMULATED (model {model.name}), seeds from {job.seed} on")
    say(f"{'':<20}{'lowest':>14}{'median':>14}{'highest':>14}")
    for name, spread in ranges.items():
        format_figure = FORMATS.get(name, format_seconds)
        say(f"{name:<20}{''.join(f'{format_figure(value):>14}' for value in spread.values())}")
    say(f"{chance:.0%} of further runs lie between the lowest and the highest")
    return code


def spreads(summaries: "Sequence[Summary]") -> dict[str, dict[str, float]]:
    """Return lowest, median and highest of the results that all runs have."""
    ranges = {}
    for name, figure_of in _FIGURES.items():
        values = [value for value in map(figure_of, summaries) if value is not None]
        if len(values) == len(summaries):
            middle = statistics.median(values)
            ranges[name] = {"low": min(values), "median": middle, "high": max(values)}
    return ranges


def _simulated(
    job: "JobSpec",
    prepared: Prepared,
    directory: Path,
    flags: Mapping[str, Any],
    model: "Model",
    deployed: "Deployed",
) -> "tuple[Run, Summary]":
    from serverless_bench.features.cost.prices import load_prices
    from serverless_bench.features.simulation.simulated_run import simulate
    from serverless_bench.metrics.summary import summarize

    run = simulate(job, directory, model=model, keys=prepared.keys, deployed=deployed)
    prices = None if flags["prices"] is None else load_prices(flags["prices"])
    return run, summarize(run, prices=prices)


def _check_output(prepared: Prepared, runs: int) -> None:
    """Check for flags that need a real run, or would hide that the run is simulated."""
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
    if runs > 1 and output.key_file is not None:
        raise UsageError("--runs creates objects of more than one run", hint="omit --key-file")
    if runs > 1 and output.format not in {None, "text", "json"}:
        raise UsageError(
            f"--runs has no report as {output.format}", hint="use sbench report for one of them"
        )
