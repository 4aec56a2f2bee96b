"""Run the cells of an experiment in turns, and go on with one that was interrupted."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from serverless_bench.archive import Run, load_run
from serverless_bench.errors import INTERRUPTED, ArchiveError, SbenchError, UsageError
from serverless_bench.executors import open_executor
from serverless_bench.experiments.cells import Cell, make_cells
from serverless_bench.experiments.loading import parse
from serverless_bench.experiments.observations import failure_path, run_path
from serverless_bench.experiments.places import Places, files_of, on_processors
from serverless_bench.experiments.schema import Experiment, Setting
from serverless_bench.experiments.settings import job_of, prepared_by, workload_of
from serverless_bench.fanout import run_job
from serverless_bench.spec import JobSpec, Target
from serverless_bench.sweep import delete, give_space_back
from serverless_bench.units import GIB
from serverless_bench.workloads import open_workload

STATE: Final = "experiment.json"
FILE: Final = "experiment.toml"
SCHEMA: Final = 1
GARBAGE_BYTES: Final = 4 * GIB
"""The embedded store gives space back after so much was deleted; in the end, from a
sixteenth of it on. That takes seconds, and its data directory may grow by as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: kept in the directory of an experiment, so that it can go on."""

    experiment: Experiment
    scale: str
    repeats: int
    seed: int = 0
    """Of the order of the runs."""
    design: str = ""
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    changes: Mapping[str, Setting] = field(default_factory=dict)
    """Settings that take the place of the cells' own."""
    target: Target | None = None
    """The user's own; None for the embedded store."""
    control: Target | None = None
    functions: tuple[str, ...] = ()
    """As in ``JobSpec``."""

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells, those that cannot run included."""
        return make_cells(
            self.experiment, self.scale, design=self.design, only=self.only, changes=self.changes
        )

    def order(self) -> Iterator[tuple[Cell, int]]:
        """Yield every cell and repeat: each cell once in random order, then again, and so on."""
        cells = [cell for cell in self.cells() if not cell.skipped]
        rng = np.random.default_rng(self.seed)
        for repeat in range(1, self.repeats + 1):
            for index in rng.permutation(len(cells)):
                yield cells[int(index)], repeat

    def check(self) -> None:
        """Refuse cells that make no job, before anything runs.

        Raises
        ------
        UsageError
            With the first of them.
        PluginError
            If an executor is unknown, or lacks its library.
        """
        for cell in self.cells():
            if not cell.skipped:
                open_executor(self.job(cell, Target(bucket="any", endpoint_url="http://any")))

    def job(self, cell: Cell, target: Target) -> JobSpec:
        """Return the job of a cell."""
        job = job_of(cell.settings, target, name=cell.slug)
        return replace(job, control=self.control, functions=self.functions)


def save(plan: Plan, root: Path) -> None:
    """Write a plan into the directory of its experiment, which must be new.

    Raises
    ------
    ArchiveError
        If the directory cannot be written, or holds an experiment.
    """
    data = {f: getattr(plan, f) for f in ("scale", "repeats", "seed", "design", "only", "changes")}
    data |= {"schema": SCHEMA, "name": plan.experiment.name, "functions": plan.functions}
    data |= {
        name: None if target is None else asdict(target)
        for name, target in (("target", plan.target), ("control", plan.control))
    }
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / FILE).write_text(plan.experiment.text, encoding="utf-8")
        with (root / STATE).open("xb") as file:
            file.write(orjson.dumps(data, option=orjson.OPT_INDENT_2))
    except FileExistsError as exc:
        raise ArchiveError(
            f"{root} holds an experiment already", hint=f"sbench exp run --resume {root}"
        ) from exc
    except OSError as exc:
        raise ArchiveError(f"cannot write {root}: {exc.strerror}", hint="--run-dir") from exc


def load(root: Path) -> Plan:
    """Return the plan of an experiment that was begun.

    Raises
    ------
    ArchiveError
        If there is none in this directory.
    """
    try:
        data: dict[str, Any] = orjson.loads((root / STATE).read_bytes())
        text = (root / FILE).read_text(encoding="utf-8")
    except (OSError, orjson.JSONDecodeError) as exc:
        raise ArchiveError(
            f"{root} is no directory of an experiment", hint="sbench exp run names the one it makes"
        ) from exc
    if data.pop("schema") != SCHEMA:
        raise ArchiveError(f"{root} was written by another version of sbench")
    for name in ("target", "control"):
        data[name] = None if data[name] is None else Target(**data[name])
    changes = {n: tuple(v) if isinstance(v, list) else v for n, v in data.pop("changes").items()}
    functions = tuple(data.pop("functions"))
    experiment = parse(text, str(data.pop("name")))
    return Plan(experiment=experiment, changes=changes, functions=functions, **data)


def run(
    plan: Plan,
    root: Path,
    *,
    clean: Callable[[Run], object] | None,
    say: Callable[[str], object] = lambda _: None,
) -> None:
    """Run what is not there yet, and keep every run below ``root``.

    A run that fails is noted beside its directory, and the others go on.

    Parameters
    ----------
    plan, root
        What, and where to; ``save`` has written the plan there.
    clean
        Deletes the objects of a run that left claims and records, too; None keeps all.
    say
        Told of every run.

    Raises
    ------
    SbenchError
        If the store does not start, or the user interrupts.
    """
    order = list(plan.order())
    todo = [(cell, repeat) for cell, repeat in order if not _is_done(root, cell, repeat)]
    with ExitStack() as stack:
        bench = _Bench(plan, root, Places(stack, plan.target), clean)
        try:
            if todo:
                bench.warm_up(todo[0][0])
            for done, (cell, repeat) in enumerate(todo, 1 + len(order) - len(todo)):
                about = bench.perform(cell, repeat) or "done"
                say(f"run {done} of {len(order)}: {cell.label}, repeat {repeat}: {about}")
        finally:
            bench.clean_up()


class _Bench:
    """Runs single cells."""

    def __init__(
        self,
        plan: Plan,
        root: Path,
        places: Places,
        clean: Callable[[Run], object] | None,
    ) -> None:
        self._plan = plan
        self._root = root
        self._places = places
        self._clean = clean
        self._deleted_bytes = 0
        self._prepared: dict[str, tuple[Run | None, SbenchError | None]] = {}

    def warm_up(self, cell: Cell) -> None:
        """Run a cell once for nothing: a store that has just started is slow."""
        path = _free(self._root / "warm-up")
        with suppress(SbenchError):
            self._run(cell, path)

    def perform(self, cell: Cell, repeat: int) -> str:
        """Run a cell; return what went wrong, or nothing."""
        path = run_path(self._root, cell, repeat)
        failure = failure_path(path)
        failure.unlink(missing_ok=True)
        if path.exists():
            path.rename(_free(self._root / "cut-off"))
        try:
            self._run(cell, path)
        except SbenchError as exc:
            if exc.exit_code == INTERRUPTED:
                raise
            text = f"{type(exc).__name__}: {exc}"
            failure.parent.mkdir(parents=True, exist_ok=True)
            failure.write_text(f"{text}\n", encoding="utf-8")
            return text
        return ""

    def clean_up(self) -> None:
        """Delete what was prepared."""
        for prepared, _ in self._prepared.values():
            if prepared is not None:
                self._delete(prepared)
        self._give_back(GARBAGE_BYTES // 16)

    def _run(self, cell: Cell, path: Path) -> None:
        target = self._places.target(cell.settings)
        keys = self._keys(cell)
        job, files = self._plan.job(cell, target), files_of(path)
        in_files = cell.settings.get("store") == "files" and job.load.array is not None
        if in_files and job.load.array is not None:
            files.mkdir(parents=True)
            job = replace(
                job, load=replace(job.load, array=replace(job.load.array, path=str(files)))
            )
        try:
            with on_processors(cell.settings.get("cpus")):
                run_job(job, path, keys=keys)
        finally:
            self._tidy(cell, path, files)

    def _tidy(self, cell: Cell, path: Path, files: Path) -> None:
        if self._clean is None:
            return
        shutil.rmtree(files, ignore_errors=True)
        if cell.settings.get("store") != "files" and (path / "run.json").exists():
            self._delete(load_run(path, detail=False))

    def _delete(self, run: Run) -> None:
        # A loopback store keeps nothing.
        if self._clean is None or self._places.keeps_nothing(run.job.target):
            return
        if run.job.control is not None:
            self._clean(run)
            return
        delete(run.job.target, run.ledger(), give_back=False)
        if run.job.target.store is not None:
            self._deleted_bytes += int(run.operations["bytes"].sum())
            self._give_back(GARBAGE_BYTES)

    def _give_back(self, least: int) -> None:
        """Have the store give back the space of what was deleted, if it is so much."""
        if self._deleted_bytes >= least:
            give_space_back()
            self._deleted_bytes = 0

    def _keys(self, cell: Cell) -> list[str]:
        """Return what a cell reads: written once for all cells with objects like its own."""
        prepare = self._plan.experiment.prepare
        if prepare is None or open_workload(workload_of(cell.settings)).creates_objects:
            return []
        settings = prepared_by(prepare[self._plan.scale], cell.settings)
        store = cell.settings.get("store", "embedded")
        # A loopback store makes what is read from its key: any plain one can prepare.
        settings["store"] = store if store != "files" else "embedded"
        name = repr(sorted((n, str(v)) for n, v in settings.items()))
        if name not in self._prepared:
            self._prepared[name] = self._prepare(settings)
        prepared, problem = self._prepared[name]
        if problem is not None:
            raise UsageError(f"what it reads could not be written: {problem}", hint=problem.hint)
        return [] if prepared is None else prepared.keys()

    def _prepare(self, settings: dict[str, Setting]) -> tuple[Run | None, SbenchError | None]:
        path = _free(self._root / "prepare")
        try:
            target = self._places.target(settings)
            job = job_of(settings, target, name="prepare")
            job = replace(job, control=self._plan.control, functions=self._plan.functions)
            return run_job(job, path), None
        except SbenchError as exc:
            if exc.exit_code == INTERRUPTED:
                raise
            return None, exc


def _is_done(root: Path, cell: Cell, repeat: int) -> bool:
    """Tell whether a run has come to its end; one that failed is made again."""
    path = run_path(root, cell, repeat)
    if failure_path(path).exists() or not (path / "run.json").exists():
        return False
    try:
        return load_run(path, detail=False).ended
    except SbenchError:
        return False


def _free(folder: Path) -> Path:
    """Return a path in a folder that is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = {path.name for path in folder.iterdir()}
    return folder / next(name for n in range(len(taken) + 1) if (name := f"{n + 1}") not in taken)
