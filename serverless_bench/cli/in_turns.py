"""Two commands that each make a run, in turns: ``sbench history check --old --new``."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.cli.ab import blocks_of, check_blocks, sides
from serverless_bench.cli.options import new_name
from serverless_bench.cli.task import CutOff, store_kept_up
from serverless_bench.cli.terminal import aside, say, working
from serverless_bench.errors import UsageError

if TYPE_CHECKING:
    from serverless_bench.analysis.samples import MeasuredRun, Sample
    from serverless_bench.history.showing import Checked

_HINT: Final = "a command is like '.venv/bin/sbench write --number 4', and leaves --run-dir to us"


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
    import numpy as np

    from serverless_bench.analysis.samples import check_comparable

    commands = _commands(runs, flags)
    count, warm_ups = flags["blocks"], flags["warm_up_blocks"]
    root = flags["run_dir"] / new_name("history", flags["name"])
    made: dict[str, list[MeasuredRun]] = {label: [] for label in commands}
    rng = np.random.default_rng(flags["seed"])
    with ExitStack() as kept:
        for title, block in blocks_of(warm_ups, count):
            folder = "warm-up" if block.startswith("warm-up") else ""
            for label in map(str, rng.permutation(list(commands))):
                run = _one(commands[label], root / folder / label, keep=flags["keep"])
                if run.settings.get("target.store") and not made["old"] and not made["new"]:
                    # It would start anew for each command, which takes seconds.
                    kept.enter_context(store_kept_up(needed=True))
                made[label].append(run)
                say(f"{title}: {label} {_rates(run, about)}  {run.path}", err=True)
            check_comparable(_samples(made, root), allowed=flags["allow"])
    counted = {label: of[warm_ups:] for label, of in made.items()}
    return _judged(counted, root, about, flags["machine"])


def _commands(runs: Sequence[str], flags: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return both commands, in words.

    Raises
    ------
    UsageError
        If one is missing or no command, or other flags make no sense with them.
    """
    from serverless_bench.experiments.comparisons import MIN_ROUNDS

    if runs or flags["against"]:
        raise UsageError(
            "--old and --new make their own runs, and need no other ones",
            hint="name runs without --old and --new to compare them with what is recorded",
        )
    check_blocks(flags["blocks"], flags["warm_up_blocks"], least=MIN_ROUNDS)
    commands = {}
    for label in ("old", "new"):
        try:
            commands[label] = shlex.split(flags[label] or "")
        except ValueError as exc:
            raise UsageError(f"--{label} is no command: {exc}", hint=_HINT) from None
        if not commands[label]:
            raise UsageError(f"--{label} is missing", hint=_HINT)
    return commands


def _one(command: Sequence[str], folder: Path, *, keep: bool) -> "MeasuredRun":
    """Run a command once, and return the run that it made below the folder."""
    from serverless_bench.analysis.samples import measured_run
    from serverless_bench.driver.clean import clean
    from serverless_bench.rundir.run import load_run

    before = _runs(folder)
    try:
        code, last = _started(command, folder)
        made = sorted(_runs(folder) - before)
        if code > 0 and len(made) == 1:
            raise CutOff(made[0], code)
        if code:
            raise UsageError(f"{shlex.join(command)} ended with exit code {code}: {last}")
        if len(made) != 1:
            raise UsageError(
                f"{shlex.join(command)} made {len(made)} runs in {folder}, and is to make one",
                hint="it finds the directory in SBENCH_RUN_DIR; " + _HINT,
            )
        return measured_run(load_run(made[0], detail=False))
    finally:
        for directory in set() if keep else _runs(folder) - before:
            with working(f"deleting what {directory} wrote"):
                clean(directory, on_message=aside)


def _runs(folder: Path) -> set[Path]:
    return {header.parent for header in folder.glob("*/run.json")}


def _started(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a command to its end, and return its exit code and the last that it said of errors."""
    environment = {**os.environ, "SBENCH_RUN_DIR": str(folder.absolute())}
    # Ours, if anybody's: runs that come one after the other cannot have one name.
    environment.pop("SBENCH_NAME", None)
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as exc:
        raise UsageError(f"cannot start {command[0]}: {exc.strerror}", hint=_HINT) from exc
    with process:
        try:
            said = process.communicate()[1]
        except BaseException:
            # A run that is interrupted saves what it has.
            process.send_signal(SIGINT)
            process.wait()
            raise
    lines = [line for line in said.splitlines() if line.strip()]
    return process.returncode, (lines or ["it said nothing"])[-1][:500]


def _rates(run: "MeasuredRun", about: Mapping[str, Any]) -> str:
    from serverless_bench.reporters.comparison import format_metric

    return ", ".join(format_metric(name, run.metric(name)) for name in about["figures"])


def _samples(made: Mapping[str, Sequence["MeasuredRun"]], root: Path) -> "list[Sample]":
    return sides({label: runs for label, runs in made.items() if runs}, root)


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
    different = what_differs(_samples(made, root))
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
