"""``sbench limit``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.analysis.requirements import require_scipy
from serverless_bench.cli.commands.ab import series_options
from serverless_bench.cli.commands.mixed import command as mixed_command
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.flags.options import choose_format, group, harmless, new_name
from serverless_bench.cli.job import Prepared
from serverless_bench.cli.output.terminal import say, say_json
from serverless_bench.cli.task import (
    COMMANDS,
    OWN_FLAGS,
    CutOff,
    check_side_by_side,
    flags_of_job,
    job_parameters,
    prepare_task,
    run_directory,
    run_task,
    store_kept_up,
)
from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import UsageError
from serverless_bench.units import NS_PER_S, format_per_s, format_seconds, parse_share

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run
    from serverless_bench.series.limit.block import Block
    from serverless_bench.series.limit.objective import Objective
    from serverless_bench.series.limit.search import Search

_JOBS: Final = {**COMMANDS, "mixed": mixed_command}
_DECIDED: Final = OWN_FLAGS | {"rate", "duration", "operations", "seed", "until_stable"}
"""Parameters of the jobs that this command has itself."""
_KNOBS: Final[Mapping[str, tuple[str, ...]]] = {
    "rate": ("rate",),
    "number": ("number", "concurrency"),
    "connections": ("connections",),
    "threads": ("threads",),
}
"""Which flags of the job a level is."""
_RANGES: Final = {"rate": (10, 100_000), "number": (1, 1000)}
_RANGE: Final = (1, 256)
_SETTLING: Final = 0.2
"""Share of a block that does not count: connections are opened, and queues fill."""
_CODES: Final = {
    "precision": ExitCode.OK,
    "budget": ExitCode.UNDECIDED,
    "lowest": ExitCode.NEVER_HELD,
    "highest": ExitCode.NO_LIMIT,
}

_search_options = group(
    harmless("--p99", metavar="TIME", help="What 99 of 100 operations may take, as in 50ms."),
    harmless("--errors", metavar="SHARE", help="What may fail or never begin, as in 0.1%."),
    harmless(
        "--over",
        type=click.Choice(list(_KNOBS)),
        default="rate",
        help="What is raised: operations per second in an open loop, functions, connections,"
        " threads.",
    ),
    harmless(
        "--lowest", type=click.IntRange(1), help="First level.  [default: 10 of rate, else 1]"
    ),
    harmless(
        "--highest",
        type=click.IntRange(1),
        help="Last level.  [default: 100000 of rate, 1000 functions, else 256]",
    ),
    harmless("--precision", default="5%", help="Half width of the interval at which it ends."),
    harmless("--budget", default="10min", metavar="TIME", help="No block begins that ends later."),
    harmless("--block", default="5s", metavar="TIME", help="Length of one run."),
)


@click.command("limit")
@click.argument("job", type=click.Choice(sorted(_JOBS)))
@_search_options
@series_options
@choose_format("text", "json", "markdown")
@click.pass_context
def command(
    context: click.Context,
    /,
    job: str,
    over: str,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Find the highest rate, or number of functions, that holds an objective.

    Levels double until one breaks it; then come rounds of short runs at levels around the
    limit, in random order, until it is known well enough or the budget is spent. All other
    flags are those of the job. See docs/limit.md for what the interval promises.
    """
    require_scipy()
    from serverless_bench.series.limit.objective import Objective, parse_seconds

    p99, errors = flags["p99"], flags["errors"]
    objective = Objective(
        p99_s=None if p99 is None else parse_seconds("--p99", p99),
        errors=None if errors is None else parse_share("--errors", errors),
    )
    block_s = parse_seconds("--block", flags["block"])
    budget_s = parse_seconds("--budget", flags["budget"])
    _check_times(block_s, budget_s, lowest=_range(over, flags)[0] if over == "rate" else None)
    task = _task(context, job, over, flags, block_s)
    series = _Series(
        task=task,
        over=over,
        objective=objective,
        search=_search(objective, over, flags),
        block_s=block_s,
        budget_s=budget_s,
        root=flags["run_dir"] / new_name("limit", flags["name"]),
        keep=flags["keep"],
        quiet=flags["format"] != "text",
    )
    return _CODES[series.measure(flags["format"])]


command.params.extend(job_parameters(_JOBS, _DECIDED))


def _check_times(block_s: float, budget_s: float, *, lowest: int | None) -> None:
    """Refuse blocks that would never end, or in which nothing would begin."""
    if block_s > budget_s:
        raise UsageError(
            f"--block {format_seconds(block_s)} is longer than --budget {format_seconds(budget_s)}",
            hint="a search is many blocks: docs/limit.md",
        )
    if lowest is not None and lowest * block_s < 1:
        raise UsageError(
            f"at --lowest {lowest} nothing may begin in a --block of {format_seconds(block_s)}",
            hint=f"--block {format_seconds(1 / lowest)} at least, or a higher --lowest",
        )


def _task(
    context: click.Context, job: str, over: str, flags: Mapping[str, Any], block_s: float
) -> Prepared:
    for name in _KNOBS[over]:
        source = context.get_parameter_source(name)
        if source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"--over {over} decides --{name}", hint=f"leave --{name} out")
    own = flags_of_job(context, _JOBS, job, flags, _DECIDED)
    if over == "number":
        check_side_by_side(flags)
    fixed = {"seed": flags["seed"], "duration": block_s, "rate": None, "operations": None}
    level = dict.fromkeys(_KNOBS[over], _range(over, flags)[0])
    return prepare_task(job, {**own, **fixed, **level})


def _range(over: str, flags: Mapping[str, Any]) -> tuple[int, int]:
    low, high = _RANGES.get(over, _RANGE)
    lowest = flags["lowest"] or low
    return lowest, flags["highest"] or max(high, lowest)


def _search(objective: "Objective", over: str, flags: Mapping[str, Any]) -> "Search":
    from serverless_bench.series.limit.search import Search

    lowest, highest = _range(over, flags)
    if lowest > highest:
        raise UsageError(
            f"--lowest {lowest} is above --highest {highest}", hint="give them the other way round"
        )
    return Search(
        allowed=objective.allowed,
        lowest=lowest,
        highest=highest,
        precision=parse_share("--precision", flags["precision"]),
        seed=flags["seed"],
    )


@dataclass(slots=True, kw_only=True)
class _Series:
    """One search: its runs lie in a directory of their own, LEVEL-NUMBER each."""

    task: Prepared
    over: str
    objective: "Objective"
    search: "Search"
    block_s: float
    budget_s: float
    root: Path
    keep: bool
    quiet: bool
    blocks: "list[Block]" = field(default_factory=list)

    @property
    def settle_s(self) -> float:
        return _SETTLING * self.block_s

    def measure(self, style: str) -> str:
        """Search, report, and return why it ended."""
        from serverless_bench.series.limit.result import result_of

        begun_ns = monotonic_ns()
        with store_kept_up(needed=self.task.embedded):
            # A store that has just started is slow.
            self._run(self.root / "warm-up" / "1", self.search.lowest)
            self._search(begun_ns)
        limit = result_of(
            self.search,
            self.blocks,
            self.objective,
            over=self.over,
            block_s=self.block_s,
            settle_s=self.settle_s,
            took_s=(monotonic_ns() - begun_ns) / NS_PER_S,
        )
        if style == "json":
            import orjson

            say_json(orjson.dumps(limit.to_json()))
        else:
            from serverless_bench.series.limit.report import lines

            say(*lines(limit, style))
        return limit.ended

    def _search(self, begun_ns: int) -> None:
        longest_ns = 0
        while (level := self.search.next_level()) is not None:
            block_begun_ns = monotonic_ns()
            if self.blocks and block_begun_ns + longest_ns - begun_ns > self.budget_s * NS_PER_S:
                return
            block = self._block(level)
            longest_ns = max(longest_ns, monotonic_ns() - block_begun_ns)
            self.search.add(level, block.bad(self.objective), block.due)
            self.blocks.append(block)

    def _block(self, level: int) -> "Block":
        from serverless_bench.series.limit.block import block_of

        number = 1 + sum(block.level == level for block in self.blocks)
        directory = self.root / f"{level}-{number}"
        block = block_of(self._run(directory, level), level, self.settle_s)
        bad = ", ".join(
            f"{name} {count / max(block.due, 1):.2%}"
            for name, count in block.bad(self.objective).items()
        )
        slow = "" if not len(block.took_s) else f", slowest {format_seconds(block.took_s[-1])}"
        slow += ", queue grows" if block.grows(self.objective) else ""
        rate = format_per_s(block.achieved_per_s)
        say(f"{self.over} {level}: {rate}{slow}; beyond {bad}  {directory}", err=self.quiet)
        return block

    def _run(self, directory: Path, level: int) -> "Run":
        from serverless_bench.rundir.run import load_run

        # Another seed, or each run would have the random arrivals of the one before.
        seed = self.search.seed + len(self.blocks)
        changes = {**dict.fromkeys(_KNOBS[self.over], level), "seed": seed}
        with run_directory(directory, keep=self.keep):
            try:
                return run_task(self.task, directory, **changes)
            except CutOff as exc:
                # Functions that failed are what a level too high may look like.
                if exc.exit_code != ExitCode.INCOMPLETE:
                    raise
                return load_run(directory)
