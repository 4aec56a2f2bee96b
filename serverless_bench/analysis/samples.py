"""Sets of runs: which may be compared, and what differs between them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final

from serverless_bench.analysis.summary import Summary, summarize
from serverless_bench.analysis.timeline import good_operations
from serverless_bench.analysis.visibility import SEEN
from serverless_bench.errors import ArchiveError, UsageError
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, flattened
from serverless_bench.units import format_count

MORE_IS_BETTER: Final = (
    "whole_bytes_per_s",
    "steady_bytes_per_s",
    "peak_1s_bytes_per_s",
    "peak_5s_bytes_per_s",
    "per_function_bytes_per_s",
)
LESS_IS_BETTER: Final = (
    "span_s",
    "makespan_s",
    "t50_s",
    "t90_s",
    "t99_s",
    "t100_s",
    "ttfb_s",
    "ack_s",
    "cpu_s_per_gib",
    "max_rss_bytes",
)
"""Fields of the JSON report that make a metric; percentiles as in ``ttfb_s.p50``."""

_NOT_SETTINGS: Final = frozenset({"name", "seed", "link", "client"})
"""What changes nothing in the figures, and what a client does: its name says that."""
SIZE_OF_THE_JOB: Final[Mapping[str, str]] = {
    "workload": "",
    "number": "--number",
    "objects": "--objects",
    "size": "--size",
    "read_times": "--read-times",
    "duration": "--duration",
    "load.sizes": "--sizes",
    "load.mix": "--mix",
    "load.operations": "--operations",
    "load.rate": "--rate",
    "load.range_size": "--range-size",
    "load.split": "--split",
    "load.array.operation": "",
    "load.array.shape": "--shape",
    "load.array.dtype": "--dtype",
    "mean_object_bytes": "--key-file",
    "bytes": "--seed",
}
"""Settings that make another job of it, and the flag of each: two samples that differ here are
no comparison."""
_ALIKE: Final = 2.0
"""Means of object sizes are of one job up to this ratio, where time decides which objects are
moved how often."""
_SHOWN: Final = 4
"""Differences that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run, without its records."""

    path: Path
    run_id: str
    created_ns: int
    """When it began, on the driver's clock."""
    summary: Summary
    settings: Mapping[str, Any]
    """What its figures depend on, by dotted name: the job and the provenance."""
    mean_object_bytes: float | None
    """Of the objects that its operations were on; None if no size is known."""

    def metric(self, name: str) -> float:
        """Return a figure of the report.

        Raises
        ------
        UsageError
            If no report has it, or this one has none, or it is no ratio's part.
        """
        more_is_better(name)
        field, _, part = name.partition(".")
        value = self.summary.to_json()[field]
        if part or isinstance(value, Mapping):
            value = value.get(part) if isinstance(value, Mapping) else None
        if field in self.summary.not_shown:
            raise UsageError(
                f"{self.path} has no {name}: {self.summary.client} does not show {SEEN[field]}",
                hint="choose another --metric, or a client that does (docs/clients.md)",
            )
        if not value:
            raise UsageError(
                f"{self.path} has no {name}",
                hint=f"choose another --metric; sbench report {self.path} shows what it has",
            )
        return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Runs of one configuration."""

    label: str
    directory: Path
    runs: tuple[MeasuredRun, ...]
    """In the order in which they were made."""

    @property
    def simulated(self) -> int:
        """How many of the runs never happened."""
        return sum(run.summary.simulated is not None for run in self.runs)

    def metric(self, name: str) -> list[float]:
        """Return a figure of every run, in the order of the runs."""
        return [run.metric(name) for run in self.runs]


def more_is_better(metric: str) -> bool:
    """Return whether a larger value is better.

    Raises
    ------
    UsageError
        If ``metric`` is not one that can be compared.
    """
    field = metric.partition(".")[0]
    if field not in {*MORE_IS_BETTER, *LESS_IS_BETTER}:
        raise UsageError(
            f"{metric!r} is not a metric",
            hint=f"known: {', '.join((*MORE_IS_BETTER, *LESS_IS_BETTER))};"
            " percentiles as in ttfb_s.p50",
        )
    return field in MORE_IS_BETTER


def sample_of(runs: Iterable[MeasuredRun], *, label: str, directory: Path) -> Sample:
    """Return a sample of these runs, by age."""
    ordered = tuple(sorted(runs, key=lambda run: run.created_ns))
    return Sample(label=label, directory=directory, runs=ordered)


def run_directories(path: Path) -> list[Path]:
    """Return ``path`` if it is a run directory, else those that lie in it.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    if (path / "run.json").exists():
        return [path]
    found = sorted(file.parent for file in path.glob("*/run.json"))
    if not found:
        raise ArchiveError(
            f"{path} is not a run directory, and has none in it",
            hint="name a directory that sbench write or sbench read made, or one of several such",
        )
    return found


def measured_run(run: Run) -> MeasuredRun:
    """Return what a comparison needs of a run.

    Raises
    ------
    UsageError
        If its figures cannot stand for its configuration: functions or the end are
        missing, data is corrupt, or the headline is withheld.
    """
    summary = summarize(run)
    flaws = {
        "its driver has not come to an end": not summary.ended,
        f"{format_count(summary.failed, 'function')} failed": summary.failed,
        f"{format_count(summary.lost, 'function')} lost": summary.lost,
        f"{format_count(summary.corrupt_objects, 'object')} corrupt": summary.corrupt_objects,
        **dict.fromkeys(summary.withheld, True),
    }
    if any(flaws.values()):
        why = "; ".join(flaw for flaw, is_there in flaws.items() if is_there)
        raise UsageError(
            f"{run.path} cannot be compared: {why}",
            hint=f"sbench report {run.path} says more; make the run again, and move this one away",
        )
    sizes = run.operations["size"][good_operations(run)]
    known = sizes[sizes != ABSENT]
    return MeasuredRun(
        path=run.path,
        run_id=run.run_id,
        created_ns=run.created_ns,
        summary=summary,
        settings=_settings(run, summary),
        mean_object_bytes=float(known.mean()) if len(known) else None,
    )


def check_comparable(samples: Sequence[Sample], *, allowed: Collection[str] = ()) -> None:
    """Refuse samples whose figures cannot be held against each other.

    Parameters
    ----------
    samples
        The baseline first.
    allowed
        Settings that may differ all the same.

    Raises
    ------
    UsageError
        If one run is on two samples, runs of one sample differ in a setting, or samples differ
        in one that makes another job of it.
    """
    seen: dict[str, Path] = {}
    for run in chain.from_iterable(sample.runs for sample in samples):
        if run.run_id in seen:
            raise UsageError(f"{run.path} and {seen[run.run_id]} are the same run")
        seen[run.run_id] = run.path
    for sample in samples:
        mixed = {n: v for n, v in _differing(sample.runs).items() if n not in allowed}
        if mixed:
            raise UsageError(
                f"the runs in {sample.directory} are not of one configuration: {_shown(mixed)}",
                hint=f"sort them into directories, or --allow {next(iter(mixed))}",
            )
    other_job = {
        name: values
        for name, values in {**what_differs(samples), **_other_objects(samples)}.items()
        if name in SIZE_OF_THE_JOB and name not in allowed
    }
    if other_job:
        raise UsageError(
            f"these runs do not do the same work: {_shown(other_job)}", hint=_advice(other_job)
        )


def _other_objects(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """Return the mean sizes of the samples' objects, if they are far apart."""
    means = [sample.runs[0].mean_object_bytes for sample in samples]
    known = [mean for mean in means if mean]
    if not known or max(known) <= _ALIKE * min(known):
        return {}
    return {"mean_object_bytes": [None if mean is None else round(mean) for mean in means]}


def _advice(other_job: Mapping[str, Sequence[Any]]) -> str:
    """Return what to do about samples that do other work."""
    name = min(other_job, key=list(SIZE_OF_THE_JOB).index)
    flag = SIZE_OF_THE_JOB[name]
    if not flag:
        return "compare writes with writes, and reads with reads: their ratio says nothing"
    return f"give both sides the same {flag}; --allow {name} compares them all the same"


def what_differs(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """Return the settings in which samples differ, with the value of each sample's first run."""
    return _differing([sample.runs[0] for sample in samples])


def in_turns(samples: Sequence[Sample]) -> bool:
    """Return whether no sample was through before another began.

    Otherwise a store that gets slower by the hour looks like a difference.
    """
    spans = sorted((sample.runs[0].created_ns, sample.runs[-1].created_ns) for sample in samples)
    return all(begin <= end for (_, end), (begin, _) in pairwise(spans))


def blocks_of(samples: Sequence[Sample]) -> list[str] | None:
    """Return the labels of each block in their order; None if the runs are not in blocks.

    They are if each sample began one run before any of them began the next.
    """
    if len({len(sample.runs) for sample in samples}) > 1:
        return None
    begins = [[(run.created_ns, sample.label) for run in sample.runs] for sample in samples]
    blocks = [sorted(block) for block in zip(*begins, strict=True)]
    if any(last[-1][0] >= next_[0][0] for last, next_ in pairwise(blocks)):
        return None
    return ["".join(label for _, label in block) for block in blocks]


def _differing(runs: Sequence[MeasuredRun]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for run in runs for name in run.settings)
    values = {name: [run.settings.get(name) for run in runs] for name in names}
    return {name: found for name, found in values.items() if any(v != found[0] for v in found)}


def _shown(differing: Mapping[str, Sequence[Any]]) -> str:
    parts = [
        f"{name} is {' or '.join(dict.fromkeys(map(str, values)))}"
        for name, values in differing.items()
    ]
    more = f", and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more


def _settings(run: Run, summary: Summary) -> dict[str, Any]:
    about = {**asdict(run.job), **run.provenance}
    settings = dict(flattened({n: v for n, v in about.items() if n not in _NOT_SETTINGS}))
    if run.job.target.store is not None:
        # A store that sbench runs has another port every time.
        del settings["target.endpoint_url"]
    if run.job.duration is None and not run.job.load.is_drawn:
        # Of a read, nothing else says how large its objects are. A mix is drawn by each
        # thread: as many operations with the same weights are the same work.
        settings["bytes"] = summary.bytes
    return settings
