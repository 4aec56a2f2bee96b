"""Sets of runs: check whether they are comparable, and list their differences."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from serverless_bench.base.errors import ArchiveError, UsageError, check_known
from serverless_bench.base.units import format_count
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.attempt_stats import SEEN
from serverless_bench.metrics.latency import PERCENTILES
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.metrics.timeline import good_operations
from serverless_bench.rundir.listing import as_argument
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT

MORE_IS_BETTER: Final = (
    "ops_per_s",
    "throughput_bytes_per_s",
    "steady_bytes_per_s",
    "peak_1s_bytes_per_s",
    "peak_5s_bytes_per_s",
    "per_function_bytes_per_s",
)
LESS_IS_BETTER: Final = (
    "elapsed_s",
    "makespan_s",
    "completion_s",
    "latency_s",
    "ttfb_s",
    "ack_s",
    "cpu_s_per_gib",
    "peak_rss_bytes",
)
"""Fields of the JSON report that are valid metrics; percentiles as in ``latency_s.p99``."""
OF_A_KIND: Final = ("ops_per_s", *PERCENTILES, "max")
"""Metrics of one kind of operation, as in ``get.ops_per_s`` and ``put.p99``: its latencies, or with
a rate its response times."""

CELLS: Final = "cells"
"""Folder of a series whose runs belong to cells, as those of a sweep."""
_NOT_SETTINGS: Final = frozenset({"name", "seed", "network_rate", "client"})
"""Fields without influence on the results, and client properties, implied by its name."""
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
"""Settings that define the work of a job, with their flags; samples that differ in them are not
comparable."""
_ALIKE: Final = 2.0
"""Maximum ratio between mean object sizes of the same job, if time determines how often each
object is transferred."""
_SHOWN: Final = 4
"""Number of differences, or of cells, in an error message."""


class MeasuredRun(Struct, frozen=True, kw_only=True):
    """A run without its records."""

    path: Path
    run_id: str
    created_ns: int
    """Start time, on the driver's clock."""
    summary: Summary
    report: Mapping[str, Any]
    """The summary as a JSON document, which takes longer than a comparison."""
    settings: Mapping[str, Any]
    """Settings that influence the results, by dotted name: the job and the provenance."""
    mean_object_bytes: float | None
    """Mean size of the objects in its operations; None if no size is known."""

    def metric(self, name: str) -> float:
        """Return the value of a metric in the report.

        Raises
        ------
        UsageError
            If the metric does not exist, is not in this report, or is zero.
        """
        more_is_better(name)
        field, _, part = name.partition(".")
        if field in self.report:
            value = self.report[field]
            if part or isinstance(value, Mapping):
                value = value.get(part) if isinstance(value, Mapping) else None
        else:
            value = self._of_kind(field, part)
        if field in self.summary.not_shown:
            raise UsageError(
                f"{self.path} has no {name}: {self.summary.client} does not show {SEEN[field]}",
                hint='choose another --metric or client; see "Clients" in the documentation',
            )
        if not value:
            raise UsageError(
                f"{self.path} has no {name}",
                hint="choose another --metric;"
                f" sbench report {as_argument(self.path)} lists the metrics it has",
            )
        return float(value)

    def _of_kind(self, kind: str, part: str) -> float | None:
        """Return a metric of one kind of operation; None if the run has none of them."""
        for row in self.summary.latencies.of_kinds:
            # With a rate a report shows response times.
            if row.kind == kind and (times := row.response or row.latency):
                return {**times.percentiles_s, "ops_per_s": row.operations_per_s}.get(part)
        return None


class Sample(Struct, frozen=True, kw_only=True):
    """Runs of the same configuration."""

    label: str
    directory: Path
    runs: tuple[MeasuredRun, ...]
    """The runs, ordered by start time."""

    @property
    def simulated(self) -> int:
        """Number of simulated runs."""
        return sum(run.summary.simulated is not None for run in self.runs)

    def metric(self, name: str) -> list[float]:
        """Return the value of a metric for every run, in the order of the runs."""
        return [run.metric(name) for run in self.runs]


def more_is_better(metric: str) -> bool:
    """Return whether a larger value is better.

    Raises
    ------
    UsageError
        If ``metric`` is not comparable.
    """
    field, _, part = metric.partition(".")
    if field in {*OperationKind} and part in OF_A_KIND:
        return part in MORE_IS_BETTER
    if field not in {*MORE_IS_BETTER, *LESS_IS_BETTER}:
        meant = f"latency_s.{metric}" if metric in PERCENTILES else ""
        did = f"did you mean {meant}, or get.{metric} of one kind of operation? " if meant else ""
        raise UsageError(
            f"{metric!r} is not a metric",
            hint=f"{did}choose one of {', '.join((*MORE_IS_BETTER, *LESS_IS_BETTER))};"
            " percentiles as in latency_s.p99, operations of a kind as in get.ops_per_s or get.p99",
        )
    return field in MORE_IS_BETTER


def sample_of(runs: Iterable[MeasuredRun], *, label: str, directory: Path) -> Sample:
    """Return a sample of runs, ordered by age."""
    ordered = tuple(sorted(runs, key=lambda run: run.created_ns))
    return Sample(label=label, directory=directory, runs=ordered)


def run_directories(path: Path) -> list[Path]:
    """Return ``path`` if it is a run directory, or else the run directories in it.

    Raises
    ------
    ArchiveError
        If there is no run directory.
    """
    if (path / "run.json").exists():
        return [path]
    directories = sorted(file.parent for file in path.glob("*/run.json"))
    if not directories:
        raise ArchiveError(
            f"{path} is not a run directory, and contains none",
            hint="name a directory that sbench write or sbench read made, or a folder of them",
        )
    return directories


def measured_run(run: Run) -> MeasuredRun:
    """Return the data of a run that a comparison needs.

    Raises
    ------
    UsageError
        If its results are not valid: functions or the end are missing, data is corrupt, or the
        headline is withheld.
    """
    summary = summarize(run)
    flaws = {
        "its driver did not exit normally": not summary.ended,
        f"{format_count(summary.failed, 'function')} failed": summary.failed,
        f"{format_count(summary.lost, 'function')} lost": summary.lost,
        f"{format_count(summary.corrupt_objects, 'object')} corrupt": summary.corrupt_objects,
        **dict.fromkeys(summary.withheld, True),
    }
    if any(flaws.values()):
        reasons = "; ".join(flaw for flaw, is_present in flaws.items() if is_present)
        raise UsageError(
            f"{run.path} cannot be compared: {reasons}",
            hint=f"sbench report {as_argument(run.path)} has details;"
            " repeat the run, and move this one away",
        )
    sizes = run.operations["size"][good_operations(run)]
    known_sizes = sizes[sizes != ABSENT]
    return MeasuredRun(
        path=run.path,
        run_id=run.run_id,
        created_ns=run.created_ns,
        summary=summary,
        report=summary.to_json(),
        settings=_settings(run, summary),
        mean_object_bytes=float(known_sizes.mean()) if len(known_sizes) else None,
    )


def check_comparable(samples: Sequence[Sample], *, allowed: Collection[str] = ()) -> None:
    """Reject samples that are not comparable.

    Parameters
    ----------
    samples
        Samples, starting with the baseline.
    allowed
        Settings that may vary.

    Raises
    ------
    UsageError
        If a run is in two samples, the runs of a sample differ in a setting, or samples differ
        in a setting that defines their work.
    """
    check_known(
        allowed,
        {*SIZE_OF_THE_JOB, *(n for side in samples for run in side.runs for n in run.settings)},
        "`allow`: the runs have no setting",
        otherwise="name one of the job, as in transfer.part_size",
    )
    seen: dict[str, Path] = {}
    for run in chain.from_iterable(sample.runs for sample in samples):
        if run.run_id in seen:
            raise UsageError(f"{run.path} and {seen[run.run_id]} are the same run")
        seen[run.run_id] = run.path
    for sample in samples:
        mixed = {n: v for n, v in _differing(sample.runs).items() if n not in allowed}
        if mixed:
            raise UsageError(
                f"the runs in {sample.directory} differ in their configuration: {_shown(mixed)}",
                hint=f"sort them into directories, or --allow {next(iter(mixed))}",
            )
    other_job = {
        name: values
        for name, values in {**what_differs(samples), **_other_objects(samples)}.items()
        if name in SIZE_OF_THE_JOB and name not in allowed
    }
    if other_job:
        raise UsageError(
            f"these runs did different work: {_shown(other_job)}", hint=_advice(other_job)
        )


def _other_objects(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """Return the mean object sizes of the samples if they differ by more than ``_ALIKE``."""
    means = [sample.runs[0].mean_object_bytes for sample in samples]
    known_means = [mean for mean in means if mean]
    if not known_means or max(known_means) <= _ALIKE * min(known_means):
        return {}
    return {"mean_object_bytes": [None if mean is None else round(mean) for mean in means]}


def _advice(other_job: Mapping[str, Sequence[Any]]) -> str:
    """Return a hint for samples of different work."""
    name = min(other_job, key=list(SIZE_OF_THE_JOB).index)
    flag = SIZE_OF_THE_JOB[name]
    if not flag:
        return "compare writes with writes, and reads with reads; a ratio of both is meaningless"
    return f"give both sides the same {flag}; --allow {name} compares them anyway"


def what_differs(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """Return the settings in which samples differ, with the values of their first runs."""
    return _differing([sample.runs[0] for sample in samples])


def interleaved(samples: Sequence[Sample]) -> bool:
    """Return whether the samples overlap in time, so that none ended before another started.

    If they do not overlap, a store that becomes slower over hours causes a difference.
    """
    spans = sorted((sample.runs[0].created_ns, sample.runs[-1].created_ns) for sample in samples)
    return all(begin <= end for (_, end), (begin, _) in pairwise(spans))


def blocks_of(samples: Sequence[Sample]) -> list[str] | None:
    """Return the labels of each block in order of time; None if the runs are not in blocks.

    Runs are in blocks if each sample started a run before any sample started the next run.
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
    return {name: seen for name, seen in values.items() if any(v != seen[0] for v in seen)}


def _shown(differing: Mapping[str, Sequence[Any]]) -> str:
    return first_of(
        [
            f"{name} is {' or '.join(dict.fromkeys(map(str, values)))}"
            for name, values in differing.items()
        ],
        ", ",
    )


def first_of(parts: Sequence[str], separator: str) -> str:
    """Return the first parts of a message, and the number of the rest."""
    suffix = f"{separator}and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return separator.join(parts[:_SHOWN]) + suffix


def _settings(run: Run, summary: Summary) -> dict[str, Any]:
    about = {**run.job.to_json(), **run.provenance}
    settings = dict(flattened({n: v for n, v in about.items() if n not in _NOT_SETTINGS}))
    if run.job.target.store is not None:
        # A store started by sbench has a different port in each run.
        del settings["target.endpoint_url"]
    if run.job.duration is None and not run.job.load.is_drawn:
        # For a read, only this value reveals the size of the objects. In a mix, each thread draws
        # its operations: equal numbers of operations with equal weights are the same work.
        settings["bytes"] = summary.bytes
    return settings


def flattened(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings by dotted name."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
