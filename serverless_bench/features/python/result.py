"""A run with its figures, as ``sbench.write`` and the other functions of workloads return it."""

from base64 import b64encode
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.clean import Cleaned, clean
from serverless_bench.job.spec import JobSpec
from serverless_bench.metrics.display import Printed
from serverless_bench.metrics.latency import Times
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.metrics.timeline import good_operations
from serverless_bench.report.render import render
from serverless_bench.rundir.run import AnyRun, Run, as_run

if TYPE_CHECKING:
    import pandas as pd

    from serverless_bench.features.formats.frames import Frames
    from serverless_bench.features.plot.picture import Picture


class Durations(NamedTuple):
    """Durations of the successful operations of a run, in seconds.

    Parameters
    ----------
    mean, max
        Mean and longest duration.
    p50, p90, p95, p99, p999
        Percentiles: nearest rank, of raw values.

    Examples
    --------
    >>> result.latency.p50 <= result.latency.p99 <= result.latency.max
    True
    """

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    max: float


class Result(Printed):
    """A run and its figures; notebooks show its table and plot.

    Every function that takes a run takes a result.

    Parameters
    ----------
    run
        A run, its name or its directory.

    Examples
    --------
    >>> result = sbench.Result(written)
    >>> result.run is written, result.summary.ok, len(result.operations)
    (True, 4, 4)
    """

    def __init__(self, run: AnyRun) -> None:
        self._run = as_run(run)

    @property
    def run(self) -> Run:
        """The run, with all tables as NumPy columns."""
        return self._run

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.run.path

    @property
    def job(self) -> JobSpec:
        """The job that ran."""
        return self.run.job

    @cached_property
    def summary(self) -> Summary:
        """All figures of the run."""
        return summarize(self.run)

    @property
    def throughput(self) -> float:
        """Average throughput in bytes per second; NaN without bytes, or if it is withheld."""
        rate = self.summary.throughput_bytes_per_s
        return nan if rate is None else rate

    @cached_property
    def latency(self) -> Durations:
        """Durations of successful operations of all kinds; NaN without any."""
        table, good = self.run.operations, good_operations(self.run)
        times = Times.from_durations((table["end_ns"] - table["start_ns"])[good])
        if times is None:
            return Durations(*(nan for _ in Durations._fields))
        named = {name.replace(".", ""): value for name, value in times.percentiles_s.items()}
        return Durations(mean=times.mean_s, **named)

    @property
    def bottleneck(self) -> str | None:
        """The most frequent bottleneck of the functions; None if unknown."""
        return TOOLS.load("bottleneck")(self.summary) if "bottleneck" in TOOLS else None

    @cached_property
    def operations(self) -> "pd.DataFrame":
        """One row per operation, with its duration in ``latency_s``; needs pandas."""
        table, frame = self.run.operations, self.frames().operations
        return frame.assign(latency_s=(table["end_ns"] - table["start_ns"]) / NS_PER_S)

    def frames(self) -> "Frames":
        """Return all tables of the run as pandas frames, times as UTC timestamps."""
        frames: Frames = TOOLS.load("frames")(self.run)
        return frames

    def keys(self) -> list[str]:
        """Return the keys of the objects that the run wrote or read."""
        return self.run.keys()

    def report(self, format: str = "text") -> str:
        """Return the figures as text, or in a format of ``sbench report --format``."""
        return render(self.summary, format)

    def plot(self, *others: AnyRun, latency: bool = False, title: str = "") -> "Picture":
        """Return a picture of this run and others; see ``sbench.plot``."""
        picture: Picture = TOOLS.load("plot")(self, *others, latency=latency, title=title)
        return picture

    def clean(self, **options: Any) -> Cleaned:
        """Delete the objects of the run; see ``sbench.clean``."""
        return clean(self.run, **options)

    def __repr__(self) -> str:
        return repr(self.run).replace("<Run", "<Result", 1)

    def __str__(self) -> str:
        return str(self.summary)

    def _repr_html_(self) -> str:
        parts = [render(self.summary, "html")]
        if "plot" in TOOLS:
            png = b64encode(self.plot()._repr_png_()).decode()
            parts.append(
                f'<img alt="plot of the run" width="720" src="data:image/png;base64,{png}">'
            )
        return "".join(parts)
