"""``sbench plan --simulate COMMAND``: a run directory of what a command would do."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from serverless_bench.cli.exit_codes import ExitCode, exit_code_of
from serverless_bench.cli.job import Prepared
from serverless_bench.cli.plan_job import job_of, prepare_command
from serverless_bench.cli.terminal import say
from serverless_bench.errors import UsageError


def check_simulation(words: Sequence[str], flags: Mapping[str, Any]) -> None:
    """Refuse flags of a simulation that make none.

    Raises
    ------
    UsageError
        If there is no command, or a model without a simulation.
    """
    if flags["model"] is not None and not flags["simulate"]:
        raise UsageError(
            "--model needs --simulate", hint="sbench plan --simulate --model ... write"
        )
    if flags["simulate"] and not words:
        raise UsageError(
            "--simulate needs a command", hint="sbench plan --simulate write --number 100000"
        )


def simulate_command(
    words: Sequence[str], flags: Mapping[str, Any], account: Mapping[str, Any]
) -> ExitCode:
    """Write a run directory as if a command had run, and report on it.

    Parameters
    ----------
    words
        The command and its flags, as behind ``sbench``; they say where the run goes.
    flags
        Of ``sbench plan``.
    account
        The fields of ``Deployed``.

    Raises
    ------
    UsageError
        If there is no such command, or one of its flags is wrong, or cannot be simulated.
    """
    from serverless_bench.simulation.limits import Deployed
    from serverless_bench.simulation.model import AWS_LAMBDA, load_model

    model = load_model(flags["model"] or AWS_LAMBDA.name)
    # Without Lambda there is no account, and no quota but one that is asked for.
    quota = account["quota"] if model.function.on_lambda else flags["quota"]
    deployed = Deployed(**{**account, "quota": quota})
    prepared = prepare_command(words)
    _check_output(prepared)
    from serverless_bench.simulation.demand import refuse_unknown

    refuse_unknown(prepared.job)
    from serverless_bench.analysis.summary import summarize
    from serverless_bench.aws.cost.prices import load_prices
    from serverless_bench.reporters import open_reporter
    from serverless_bench.reporters.reporter import write_report
    from serverless_bench.simulation.simulated_run import simulate

    style = flags["format"]
    if style == "text":
        style = prepared.output.format or style
    reporter = open_reporter(style)
    run = simulate(
        job_of(prepared),
        prepared.directory,
        model=model,
        keys=prepared.keys,
        deployed=deployed,
    )
    say(f"run directory: {prepared.directory}", err=style != "text")
    prices = None if flags["prices"] is None else load_prices(flags["prices"])
    summary = summarize(run, prices=prices)
    write_report(reporter, summary, run, sys.stdout)
    if prepared.output.key_file is not None:
        from serverless_bench.job.keys import write_key_file

        write_key_file(prepared.output.key_file, run.keys())
    return exit_code_of(summary)


def _check_output(prepared: Prepared) -> None:
    """Refuse what would be of a run that happened, or could not be told from one."""
    output = prepared.output
    for flag, value in (
        ("--ceiling", output.ceiling),
        ("--pickle", output.pickle),
        ("--max-cost", output.max_cost),
        ("--metrics", output.display.metrics),
    ):
        if value:
            raise UsageError(f"{flag} is not simulated", hint="leave it out: docs/simulate.md")
