"""Plan and cost of a study, which a resumed run reads again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from math import prod
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
import orjson

from serverless_bench.base.errors import ArchiveError, PluginError, SbenchError, UsageError
from serverless_bench.base.process import cpus
from serverless_bench.base.user_files import read_text, reason
from serverless_bench.driver.origin import is_sealed, sealed
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.aws.stack.template import THIN, DeployedFunction, choose
from serverless_bench.features.compare.runs import interleaved
from serverless_bench.features.cost.limit import cost_limit
from serverless_bench.features.cost.outlook import plan as plan_job
from serverless_bench.features.cost.prices import format_money
from serverless_bench.features.stages.examples import example_keys
from serverless_bench.features.studies import DESIGNS, SCALES, STATE
from serverless_bench.features.studies.cells import Cell, crowded, make_cells
from serverless_bench.features.studies.definition import (
    Setting,
    Settings,
    Study,
    check_repeats,
)
from serverless_bench.features.studies.loading import parse
from serverless_bench.features.studies.pilot import is_fixed, pilot_settings, replace_json
from serverless_bench.features.studies.settings import (
    check_cell,
    job_of,
    merged,
    prepared_by,
    workload_of,
)
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.endpoint import is_here
from serverless_bench.job.setting_schema import checked, converted
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol, Target
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import Trait, open_workload
from serverless_bench.rundir.digests import SEAL

FILE: Final = "study.toml"
SCHEMA: Final = 1
_TEXT: Final = "text"
"""Field of the sealed plan that holds the text of the study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan of a study, kept in the same directory for a resumed run."""

    study: Study
    scale: str
    repeats: int
    seed: int = 0
    """Seed of the order of the runs."""
    seconds: float | None = None
    """Maximum duration of a run; None for the duration of the scale."""
    minutes: float = 0.0
    """Time limit for rounds beyond ``repeats``, given the pilots; 0 once the rounds are fixed."""
    design: str = ""
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    changes: Mapping[str, Setting] = field(default_factory=dict)
    """Settings that override those of the cells."""
    protocol: StoreProtocol = StoreProtocol.S3
    """Protocol of the user's bucket; cells for another protocol are omitted."""
    target: Target | None = None
    """The user's target; None for the embedded store."""
    control: Target | None = None
    functions: tuple[str, ...] = ()
    """Functions as in ``JobSpec``, unless ``deployed`` has those of a stack."""
    processors: int = field(default_factory=cpus)
    """CPUs of the machine that runs the study."""
    deployed: tuple[DeployedFunction, ...] = ()
    """Functions of the stack, if there is a stack: cells choose by client, memory and architecture.
    """

    @property
    def most_s(self) -> float:
        """Maximum duration of a run; 0 for as long as its objects take."""
        if is_fixed(self.changes):
            return 0.0
        return self.study.scales[self.scale].seconds if self.seconds is None else self.seconds

    @property
    def one_factor(self) -> bool:
        """Whether a single axis is changed at a time."""
        return (self.design or self.study.design) == "one-factor"

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells, including cells that cannot run."""
        cells = make_cells(
            self.study,
            self.scale,
            design=self.design,
            only=self.only,
            changes=self.changes,
            protocol=self.protocol,
        )
        host = "localhost" if self.target is None else urlsplit(self.target.endpoint_url).hostname
        here = is_here(host or "")
        return tuple(
            replace(cell, crowded=crowded(cell.settings, self.processors, store_here=here))
            for cell in cells
        )

    def runnable(self) -> list[Cell]:
        """Return the cells that are not skipped."""
        return [cell for cell in self.cells() if not cell.skipped]

    def order(self) -> Iterator[tuple[Cell, int]]:
        """Yield each cell with the repeat, in rounds of all cells in random order."""
        for repeat, cell in interleaved(self.runnable(), self.repeats, self.seed):
            yield cell, repeat

    def prepared(self, cell: Cell) -> dict[str, Setting] | None:
        """Return the settings of the write that prepares a cell's objects, or None."""
        prepare = self.study.prepare
        # Arrays are one workload, which writes or reads.
        if prepare is None or (
            Trait.CREATES_OBJECTS in open_workload(workload_of(cell.settings)).traits
            and cell.settings.get("operation") != "read"
        ):
            return None
        return prepared_by(prepare[self.scale], cell.settings)

    def check(self, max_cost: float | None = None) -> int:
        """Check the jobs of all cells, and that a limit of cost applies.

        Returns
        -------
        int
            Bytes that the largest cell stores in the embedded store at the same time.

        Raises
        ------
        UsageError
            For the first of them.
        PluginError
            If an executor is unknown, or lacks its library. Cells with a missing client or array
            library become rows of the table.
        """
        cells, largest = self.runnable(), 0
        for executor in {cell.settings.get("executor", DEFAULT_EXECUTOR) for cell in cells}:
            check_cell({"executor": executor})
            cost_limit(str(executor), max_cost=max_cost)
        for cell in cells:
            with suppress(PluginError):
                checked_job = check_cell(cell.settings, functions=self.functions_of(cell.settings))
                prepared = self.prepared(cell)
                written = checked_job if prepared is None else check_cell(prepared)
                if cell.settings.get("store") != "loopback":
                    largest = max(largest, prod(written.new_objects()))
        return largest

    def job(
        self, settings: Settings, target: Target, *, name: str, keys: Sequence[str] = ()
    ) -> JobSpec:
        """Return a job of the study, for a cell or for a preparation."""
        job = job_of(settings, target, name=name, keys=keys, functions=self.functions_of(settings))
        return replace(job, control=self.control)

    def functions_of(self, settings: Settings) -> tuple[str, ...]:
        """Return the functions that a job with these settings invokes.

        Raises
        ------
        UsageError
            If the stack has no function with this client, memory and architecture, or there is no
            stack to choose from.
        """
        memory, arch = (
            checked(FunctionOptions, name, settings.get(name)) for name in ("memory", "arch")
        )
        if not self.deployed:
            if not self.functions or (memory is None and arch is None):
                return self.functions
            raise wrong(
                "memory" if arch is None else "arch",
                "chooses among the functions of a stack, and `function` names one",
                hint="`stack` NAME; `sbench aws stack` writes one",
            )
        client = str(settings.get("client", THIN))
        chosen = choose(self.deployed, client=client, memory=memory, arch=arch)
        return tuple(deployed.name for deployed in chosen)


def save_plan(plan: Plan, root: Path) -> None:
    """Write a plan into the directory of its study, which must be new.

    Raises
    ------
    ArchiveError
        If the directory cannot be written, or holds a study.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / FILE).open("x", encoding="utf-8") as text:
            text.write(plan.study.text)
        with (root / STATE).open("xb") as file:
            file.write(orjson.dumps(_sealed(plan), option=orjson.OPT_INDENT_2))
    except FileExistsError as exc:
        raise ArchiveError(
            f"{root} exists", hint=f"--name another, or continue it: --resume {root}"
        ) from exc
    except OSError as exc:
        raise ArchiveError(f"cannot write {root}: {exc.strerror}", hint="--run-dir") from exc


def overwrite_plan(plan: Plan, root: Path) -> None:
    """Replace the plan on disk atomically."""
    replace_json(root / STATE, _sealed(plan))


def _sealed(plan: Plan) -> dict[str, Any]:
    """Return a plan for its file, with a seal that also covers the text of the study."""
    values = {f.name: getattr(plan, f.name) for f in fields(plan) if f.name != "study"}
    data = orjson.loads(orjson.dumps({**values, "schema": SCHEMA, "name": plan.study.name}))
    return {**data, SEAL: sealed({**data, _TEXT: plan.study.text})[SEAL]}


def load_plan(root: Path, *, to_run: bool = False, trust: bool = False) -> Plan:
    """Return the plan of a study that has been started.

    Parameters
    ----------
    root
        Directory of the study.
    to_run
        Whether its jobs will run, so that requests go where the plan says.
    trust
        Whether the user trusts a plan that was made elsewhere.

    Raises
    ------
    ArchiveError
        If the directory has no valid plan.
    UsageError
        If its jobs will run, and it was made elsewhere and is not trusted.
    """
    try:
        data: Any = orjson.loads(read_text(root / STATE))
        text = read_text(root / FILE)
    except (OSError, ValueError) as exc:
        raise ArchiveError(
            f"{root} is not the directory of a study or sweep: {reason(exc)}",
            hint="give the directory that the command printed",
        ) from exc
    if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
        raise ArchiveError(f"{root} was written by another version of sbench")
    if to_run and not trust and not is_sealed({"schema": SCHEMA, **data, _TEXT: text}):
        raise UsageError(
            f"{root} was not made here; its runs would use the stores and functions that it names",
            hint="--trust if you know its owner and accept these",
        )
    data.pop(SEAL, None)
    study = parse(text, str(data.pop("name", root.name)))
    try:
        plan = msgspec.convert({**data, "study": study}, Plan)
        check_repeats(plan.repeats)
        converted(Literal[SCALES], "scale", plan.scale)
        converted(Literal[("", *DESIGNS)], "design", plan.design)
    except (msgspec.ValidationError, UsageError) as exc:
        raise ArchiveError(f"{root / STATE} is not a valid plan: {exc}") from exc
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job of a study, and the number of runs."""

    job: JobSpec
    keys: tuple[str, ...] = ()
    """Keys like those of the objects that it reads."""
    runs: int


def planned_jobs(plan: Plan, target_of: Callable[[Settings], Target]) -> Iterator[PlannedJob]:
    """Yield the jobs of all rounds, pilots and preparations, with the maximum duration of each run.

    Parameters
    ----------
    plan
        Plan of the study.
    target_of
        Function that returns the target of a cell, given the settings.
    """
    prepared: dict[str, tuple[str, ...]] = {}
    for number, cell in enumerate(plan.runnable()):
        target, written, keys = target_of(cell.settings), plan.prepared(cell), tuple[str, ...]()
        if written is not None:
            name = repr(sorted((n, str(v)) for n, v in written.items()))
            if name not in prepared:
                job = plan.job(written, target, name="prepare")
                prepared[name] = tuple(example_keys(job, ()))
                yield PlannedJob(job=job, runs=1)
            keys = prepared[name]
        length = {"duration": plan.most_s} if pilot_settings(cell.settings, plan.most_s) else {}
        settings = merged(cell.settings, length if plan.most_s else {})
        # Each cell has a pilot; without pilots, there is a single warm-up run.
        extra = 1 if plan.most_s or not number else 0
        job = plan.job(settings, target, name=cell.slug, keys=keys)
        yield PlannedJob(job=job, keys=keys, runs=plan.repeats + extra)


def dollars_text(plan: Plan) -> str:
    """Return a text on the cost of all jobs on AWS Lambda, as estimated by ``sbench plan``.

    The text is empty if the cost is unknown.
    """
    total, currency = 0.0, ""
    try:
        for planned in planned_jobs(plan, lambda _: Target(bucket="planned")):
            job = replace(planned.job, concurrency=planned.job.number)
            outlook = plan_job(job, planned.keys)
            if outlook.dollars is None:
                return ""
            total, currency = total + planned.runs * outlook.dollars.total, outlook.prices.currency
    except SbenchError:
        return ""
    if not total:
        return ""
    return (
        f"with functions on AWS Lambda about {format_money(total, currency)}: all rounds, pilots"
        " and preparations"
    )
