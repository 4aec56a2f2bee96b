"""Old and new in turns: ``sbench history check --old --new``."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serverless_bench.cli.flags.options import new_name
from serverless_bench.cli.output.terminal import aside
from serverless_bench.cli.turns import check_blocks, run_in_turns, samples, side_of_command
from serverless_bench.cli.user_command import words_of
from serverless_bench.errors import UsageError

if TYPE_CHECKING:
    from serverless_bench.analysis.samples import MeasuredRun
    from serverless_bench.history.showing import Checked


def in_turns(runs: Sequence[str], flags: Mapping[str, Any], about: Mapping[str, Any]) -> "Checked":
    """Run both commands in turns, and judge their runs.

    Raises
    ------
    UsageError
        If a flag is wrong, a command cannot be started or makes no run, or their runs do not
        do the same work.
    CutOff
        If a command fails.
    """
    commands = _commands(runs, flags)
    root = flags["run_dir"] / new_name("history", flags["name"])
    made = run_in_turns(
        {label: side_of_command(words, keep=flags["keep"]) for label, words in commands.items()},
        root,
        flags,
        embedded=False,
        show=lambda turn, run: aside(f"{turn} {_rates(run, about)}  {run.path}"),
    )
    return _judged(made, root, about, flags["machine"])


def _commands(runs: Sequence[str], flags: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return both commands, in words.

    Raises
    ------
    UsageError
        If one is missing or no command, or other flags make no sense with them.
    """
    from serverless_bench.statistics.paired import MIN_ROUNDS

    if runs or flags["against"]:
        raise UsageError(
            "--old and --new make their own runs, and need no other ones",
            hint="name runs without --old and --new to compare them with what is recorded",
        )
    check_blocks(flags["blocks"], flags["warm_up_blocks"], least=MIN_ROUNDS)
    return {label: words_of(flags[label] or "", f"--{label}") for label in ("old", "new")}


def _rates(run: "MeasuredRun", about: Mapping[str, Any]) -> str:
    from serverless_bench.reporters.comparison import format_metric

    return ", ".join(format_metric(name, run.metric(name)) for name in about["figures"])


def _judged(
    made: "Mapping[str, Sequence[MeasuredRun]]", root: Path, about: Mapping[str, Any], machine: str
) -> "Checked":
    from serverless_bench.analysis.samples import what_differs
    from serverless_bench.history.judging import by_block, judge
    from serverless_bench.history.recorded import record
    from serverless_bench.history.showing import Checked
    from serverless_bench.rundir.run import load_run

    figures = about["figures"]
    old, new = (
        {name: [run.metric(name) for run in made[label]] for name in figures}
        for label in ("old", "new")
    )
    findings = judge(by_block(figures, old, new), tolerance=about["tolerance"], loss=about["loss"])
    different = what_differs(samples(made, root))
    return Checked(
        key=record(load_run(made["new"][0].path, detail=False), machine=machine).key,
        in_turns=True,
        old="as many of the old one",
        new=f"{len(made['new'])} runs of the new version in turns",
        tolerance=about["tolerance"],
        loss=about["loss"],
        findings=tuple(findings),
        notes=tuple(_words(different)),
    )


def _words(differing: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    for name, (old, new) in differing.items():
        yield f"{name} differs: {old}, {new}"
