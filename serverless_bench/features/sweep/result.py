"""The answer of ``sbench sweep``: a row for each combination, and the knee of each line of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from serverless_bench.base.units import format_number, format_per_s, format_rate, format_seconds
from serverless_bench.features.answers.answer import Drawing, Tile
from serverless_bench.features.bottleneck.part import CAUSES
from serverless_bench.features.studies.definition import Metric, Value
from serverless_bench.features.studies.knee import Knee, knee_test
from serverless_bench.features.studies.observations import IDLE, CellRuns, median_of
from serverless_bench.features.sweep.design import IN_FLIGHT
from serverless_bench.report.text_table import table

_KINDS: Final = {"write": "put", "read": "get"}
_OF_THE_CLIENT: Final = frozenset({"client", "interpreter_lock", "function_network"})
"""Causes by which a cell measures the functions and not the store."""
_RATE: Final = Metric(name="ops_per_s", header="", of="ops_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """The medians of the runs of a combination; None where no run counts."""

    at: Mapping[str, Value]
    """Values by axis."""
    functions: int
    threads: int
    runs: int
    """Runs that count."""
    ops_per_s: float | None
    throughput_bytes_per_s: float | None
    p50_s: float | None
    p99_s: float | None
    failed_attempts: float | None
    """Median number of failed requests in a run."""
    bottleneck: tuple[str, ...]
    """Most frequent causes, as in a report of a run."""
    problems: tuple[str, ...]
    """Reasons why runs do not count."""

    @property
    def client_bound(self) -> bool:
        """Whether the functions bounded the rate, and not the store."""
        return bool(self.bottleneck) and _OF_THE_CLIENT.issuperset(self.bottleneck)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """Rows and knees of a sweep.

    Parameters
    ----------
    rows
        A row for each combination.
    knees
        The other axes' values, with the smallest number of operations in flight within 5 % of the
        best rate.
    """

    rows: tuple[SweepRow, ...]
    knees: tuple[tuple[Mapping[str, Value], Knee], ...]

    @property
    def complete(self) -> bool:
        """Whether each combination has a run that counts."""
        return all(row.runs for row in self.rows)

    @property
    def headline(self) -> str:
        """The best throughput and the best rate of operations, in a few words."""
        fastest = max(self.rows, key=lambda row: row.throughput_bytes_per_s or 0)
        busiest = max(self.rows, key=lambda row: row.ops_per_s or 0)
        if busiest.ops_per_s is None:
            return "no run counts"
        return (
            f"{format_rate(fastest.throughput_bytes_per_s)} at {_place(fastest.at)};"
            f" {format_number(busiest.ops_per_s, 3)} operations/s at {_place(busiest.at)}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench sweep``; README.md lists its fields."""
        return {
            "rows": [{**asdict(row), "client_bound": row.client_bound} for row in self.rows],
            "knees": [
                {"at": at, IN_FLIGHT: knee.at, "low": knee.low, "high": knee.high}
                for at, knee in self.knees
            ],
            "complete": self.complete,
        }

    def lines(self, style: str) -> Iterator[str]:
        """Yield the table and the knees as text or Markdown."""
        names = [name for name in self.rows[0].at if name != IN_FLIGHT]
        header = (*names, "in flight", "operations", "throughput", "p50", "p99", "errors")
        cells = [
            (
                *(str(row.at[name]) for name in names),
                f"{row.at[IN_FLIGHT]} ({row.functions} x {row.threads})",
                *_figures(row),
                _causes(row),
            )
            for row in self.rows
        ]
        align = "l" * len(names) + "rrrrrrl"
        yield from table((*header, "bottleneck"), cells, style, align=align)
        if any(row.client_bound for row in self.rows):
            yield (
                "* The functions bounded the rate: a store that is faster would not show it. More"
                " functions on other machines, or a cheaper client, measure further."
            )
        yield "In brackets: functions x threads. Rates and latencies are medians of the runs."
        for at, knee in self.knees:
            last = knee.rates[-1][0]
            text = f"still rises at {last}" if knee.at == last else f"{knee.at} in flight"
            more = f" ({knee.low} to {knee.high})" if knee.low != knee.high else ""
            yield f"knee of {_place(at)}: {text}{more}"
        for row in self.rows:
            yield from (f"{_place(row.at)}: {problem}" for problem in row.problems)

    def drawings(self) -> tuple[Drawing, ...]:
        """Return a heat map of the throughput for each job."""
        jobs = dict.fromkeys(str(row.at["job"]) for row in self.rows)
        return tuple(
            Drawing(
                title=f"Throughput of {job}, MB/s",
                says="Medians of the runs of each combination.",
                at="operations in flight",
                value="MB/s",
                tiles=tuple(
                    Tile(
                        row=_place(
                            {n: v for n, v in row.at.items() if n not in {"job", IN_FLIGHT}}
                        ),
                        at=str(row.at[IN_FLIGHT]),
                        value=row.throughput_bytes_per_s / 1e6,
                    )
                    for row in self.rows
                    if row.at["job"] == job and row.throughput_bytes_per_s
                ),
            )
            for job in jobs
        )


def sweep_result(observed: Iterable[CellRuns]) -> SweepResult:
    """Return the rows and knees of the runs of a sweep."""
    observed = list(observed)
    lines = dict[tuple[tuple[str, Value], ...], list[CellRuns]]()
    for runs in observed:
        others = tuple((n, v) for n, v in runs.cell.at.items() if n != IN_FLIGHT)
        lines.setdefault(others, []).append(runs)
    return SweepResult(
        rows=tuple(map(_row, observed)),
        knees=tuple(
            (dict(others), test.knee())
            for others, line in lines.items()
            if (test := knee_test(_rates(line))) is not None
        ),
    )


def _rates(line: Sequence[CellRuns]) -> list[tuple[Value, dict[int, float]]]:
    ordered = sorted(line, key=lambda runs: int(runs.cell.at[IN_FLIGHT]))
    return [(runs.cell.at[IN_FLIGHT], runs.by_round(_RATE)) for runs in ordered]


def _row(runs: CellRuns) -> SweepRow:
    settings, at = runs.cell.settings, runs.cell.at
    kind = _KINDS[str(at["job"])]

    def value(figure: str) -> float | None:
        estimate = median_of(runs.by_round(Metric(name=figure, header="", of=figure)).values())
        return None if estimate is None else estimate.at

    return SweepRow(
        at=at,
        functions=int(str(settings["number"])),
        threads=int(str(settings["threads"])),
        runs=runs.counted,
        ops_per_s=value("ops_per_s"),
        throughput_bytes_per_s=value("throughput_bytes_per_s"),
        p50_s=value(f"{kind}.p50_s"),
        p99_s=value(f"{kind}.p99_s"),
        failed_attempts=value("failed_attempts"),
        bottleneck=runs.bottlenecks,
        problems=tuple(runs.problems()),
    )


def _figures(row: SweepRow) -> tuple[str, ...]:
    return (
        "-" if row.ops_per_s is None else format_per_s(row.ops_per_s),
        format_rate(row.throughput_bytes_per_s),
        format_seconds(row.p50_s),
        format_seconds(row.p99_s),
        "-" if row.failed_attempts is None else f"{row.failed_attempts:.0f}",
    )


def _causes(row: SweepRow) -> str:
    texts = ("slots idle" if cause == IDLE else CAUSES[cause] for cause in row.bottleneck)
    return ", ".join(texts) + " *" * row.client_bound


def _place(at: Mapping[str, Value]) -> str:
    return " ".join(
        f"{value} in flight" if name == IN_FLIGHT else str(value) for name, value in at.items()
    )
