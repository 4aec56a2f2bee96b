"""Content of a study's file, as values; README.md explains the keys.

``loading`` converts a file into these types, and rejects undeclared keys. ``contradictions`` lists
published rows that fail the checks of a file.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct, structs

from serverless_bench.features.compare.verdict import MIN_BLOCKS, THRESHOLD
from serverless_bench.features.studies import MAX_REPEATS, Design
from serverless_bench.job.types import at_least, at_most, wrong


class BaseCheck(Struct, frozen=True, kw_only=True, tag_field="kind", tag=str.lower):
    """Fields of all checks."""

    text: str
    """Meaning of a contradiction."""
    where: Mapping[str, str | int | float | bool] = {}
    """Values of axes that restrict the check to some rows."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Metrics that the check concerns."""
        given = structs.asdict(self)
        names_by_field = (
            given.get(field, ()) for field in ("metric", "failed", "time", "metrics", "others")
        )
        return tuple(
            name
            for value in names_by_field
            for name in ([value] if isinstance(value, str) else value)
        )

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Axes that the check refers to."""
        along = structs.asdict(self).get("along")
        return (*self.where, along) if along else tuple(self.where)


class Grows(BaseCheck, frozen=True, kw_only=True):
    """A check that a time does not fall as the work grows."""

    metric: str
    along: str
    """Axis of numbers or sizes."""


class Link(BaseCheck, frozen=True, kw_only=True):
    """A check that no row transfers more bytes per second than the network permits."""

    metric: str
    """A rate of bytes, operations per second, or a time."""
    most: float
    unit: str
    """Unit of ``most``, in bytes per second."""
    along: str = ""
    """Axis of sizes: the bytes of an operation, or of the time."""
    bytes: int = 0
    """The same for all rows, if it is not an axis."""


class Failures(BaseCheck, frozen=True, kw_only=True):
    """A check that failures are not counted as throughput."""

    metric: str
    """Rate that includes failed attempts."""
    failed: str
    """Metric with the fraction of failures in this rate."""


class Repeats(BaseCheck, frozen=True, kw_only=True):
    """A check that different rows, or different columns of a row, do not agree in all figures."""

    metrics: tuple[str, ...]
    along: str = ""
    """Axis in which rows differ."""
    others: tuple[str, ...] = ()
    """The same number of metrics of the same row, in place of an axis."""


class Amount(BaseCheck, frozen=True, kw_only=True):
    """A check that a rate times a duration is the amount of work."""

    metric: str
    """The rate."""
    time: str
    """Metric of the time."""
    along: str = ""
    amounts: Mapping[str, float] = {}
    """Amounts by value of ``along``; without them, the amount is the same in all rows."""


class Order(BaseCheck, frozen=True, kw_only=True):
    """A check that values of a row do not fall in this order, for example percentiles."""

    metrics: tuple[str, ...]


Check = Amount | Failures | Grows | Link | Order | Repeats
KINDS: Final[Mapping[str, type[Check]]] = {kind.__name__.lower(): kind for kind in get_args(Check)}
"""Checks by name in a file."""


def kind_of(check: Check) -> str:
    """Return the name of a check in a file."""
    return type(check).__name__.lower()


UNITS: Final[Mapping[str, float]] = {
    "": 1.0,
    "B/s": 1.0,
    "Mbps": 1e6 / 8,
    "Gbps": 1e9 / 8,
    "kB/s": 1e3,
    "MB/s": 1e6,
    "GB/s": 1e9,
    "MiB/s": 2.0**20,
    "GiB/s": 2.0**30,
    "MB": 1e6,
    "GB": 1e9,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "s": 1.0,
    "ms": 1e-3,
    "%": 1e-2,
}
"""Each unit in the basic unit of figures: bytes, seconds, fractions."""
RATES: Final = frozenset(unit for unit in UNITS if unit.endswith(("/s", "bps")))
"""Units of bytes per second."""

Value = str | int | float | bool
"""Value of an axis."""
Setting = Value | tuple[Value, ...] | None
Settings = Mapping[str, Setting]
"""Settings by dotted name, such as ``mix.get``; ``settings`` has the list."""
Figure = float | str | tuple[float, float]
"""Published figure: a number, words, or a range."""
_MOST: Final = 1e12
"""Maximum of the numbers of a scale."""
_MOST_DIGITS: Final = 12
_APPROXIMATELY: Final = re.compile(r"~(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?")
"""Approximate values such as ``~1.2`` and ``~4-5``."""


class Publication(Struct, frozen=True, kw_only=True):
    """Source of the published figures."""

    source: str
    date: str
    url: str = ""
    setup: str = ""
    """Machine, store and network, as far as published."""


class Scale(Struct, frozen=True, kw_only=True):
    """Size of the study."""

    about: str = ""
    min_bytes: int
    """Minimum bytes of a run; runs with fewer are no evidence."""
    repeats: int = MIN_BLOCKS
    """Number of rounds; each cell runs once in each of them."""
    minutes: float = 0.0
    """Time limit for additional rounds, given the pilots; 0 for no additional rounds."""
    seconds: float = 0.0
    """Maximum duration of a run; 0 for as long as its objects take."""
    standard_error: float = 0.03
    """Relative standard error of the rate: cells that reach it earlier, by the pilot, run shorter.
    """
    settings: Settings
    """Settings of all cells, unless overridden by an axis or a cell."""

    def __post_init__(self) -> None:
        check_repeats(self.repeats)
        for name in ("minutes", "seconds", "standard_error"):
            if not 0 <= getattr(self, name) <= _MOST:
                raise wrong(name, f"must be between 0 and {_MOST:g}, got {getattr(self, name):g}")


def check_repeats(repeats: int) -> None:
    """Check the number of rounds.

    Raises
    ------
    UsageError
        If the number is out of range.
    """
    at_least("repeats", repeats, 1)
    at_most("repeats", repeats, MAX_REPEATS)


class Axis(Struct, frozen=True, kw_only=True):
    """An axis of variation."""

    name: str
    header: str
    setting: str
    """Setting that receives each value."""
    values: Mapping[str, tuple[Value, ...]]
    """Values by scale."""
    levels: Mapping[str, Mapping[str, Settings]] = {}
    """Settings of values that represent multiple settings: by their text, and by scale."""
    baseline: Mapping[str, Value] = {}
    """Value by scale while another axis is varied; by default the first."""
    paired: bool = False
    """Whether the i-th small value corresponds to the i-th value of the paper."""


class NamedCell(Struct, frozen=True, kw_only=True):
    """A cell that sets multiple axes and settings."""

    name: str
    at: Mapping[str, Mapping[str, Setting]]
    """Values by scale: axes by name, and settings."""


class Unsupported(Struct, frozen=True, kw_only=True):
    """Impossible cells, which the table shows with the reason, and which are not run."""

    at: Mapping[str, Value] = {}
    reason: str


class Metric(Struct, frozen=True, kw_only=True):
    """A column of the published table."""

    name: str
    header: str
    of: str
    """Figure of a run, see ``figures``."""
    unit: str = ""
    for_bytes: int = 0
    """Number of bytes to scale the figure to, from the bytes of a run; 0 for no scaling."""
    digits: int | None = None
    """Digits after the decimal point; None for three significant digits."""
    better: Literal["more", "less"] = "more"
    relative: Literal["", "speedup", "efficiency", "change"] = ""
    """Relation to the first value of an axis; empty for the figure itself."""
    to: str = ""
    """Axis of the relation."""

    def __post_init__(self) -> None:
        if self.digits is not None:
            at_least("digits", self.digits, 0)
            at_most("digits", self.digits, _MOST_DIGITS)


class Hypothesis(Struct, frozen=True, kw_only=True):
    """A claim with a test."""

    id: str
    text: str
    test: Literal["faster", "slower", "same", "no-gain", "linear", "proportional", "law", "knee"]
    """Claim about the second value of a segment, relative to the first; ``law`` and ``knee``
    concern
    a complete line.
    """
    metric: str
    along: str
    """Axis of the segments."""
    segments: Literal["neighbours", "first"] | tuple[tuple[Value, Value], ...] = "neighbours"
    """Each value against the previous value; each against the first; or these pairs."""
    where: Mapping[str, Value] = {}
    """Values that restrict the claim to some cells."""
    across: str = ""
    """For ``knee``: axis for whose values the knee is the same."""
    expect: Value | None = None
    """For ``knee``: the claimed place; for ``law``: ``flat`` or ``in proportion``."""
    threshold: float = THRESHOLD
    """Smallest relative difference that matters."""
    published: str = ""
    """Result in the words of the publication."""


class PublishedRow(Struct, frozen=True, kw_only=True):
    """A published row."""

    cell: str = ""
    """Name of the cell, for cells with a name."""
    at: Mapping[str, Value] = {}
    """Values by axis, in the values of the paper."""
    values: Mapping[str, Figure]
    """Published values by metric."""
    note: str = ""

    @property
    def label(self) -> str:
        """Name or values of the cell, for display."""
        return self.cell or " ".join(f"{name}={value}" for name, value in self.at.items())

    def range(self, metric: str) -> tuple[float, float, float] | None:
        """Return the middle and the ends of the range of a figure; None for words."""
        value = self.values.get(metric)
        if isinstance(value, str) and (match := _APPROXIMATELY.fullmatch(value)):
            value = (float(match[1]), float(match[2] or match[1]))
        if value is None or isinstance(value, str):
            return None
        low, high = value if isinstance(value, tuple) else (value, value)
        return (low + high) / 2, low, high


class Plot(Struct, frozen=True, kw_only=True):
    """Appearance of the picture."""

    kind: Literal["lines", "bars", "operations", "runs"] = "lines"
    """``operations``: the rate of each by its number and bytes; ``runs``: like ``sbench plot``."""
    x: str = ""
    """Axis of the picture."""
    y: str = ""
    """Metric of the picture."""
    series: str = ""
    """Axis with values that become separate lines."""
    log: bool = False
    """Whether x doubles from each tick to the next."""
    log_y: bool = False
    """Whether lines have logarithmic heights, with a common scale of both panels."""


class Study(Struct, frozen=True, kw_only=True):
    """A study: runs, metrics, claims and published results."""

    name: str
    title: str
    question: str
    null_hypothesis: str
    seed: Publication
    scales: Mapping[str, Scale]
    prepare: Mapping[str, Settings] | None = None
    """Settings by scale of the write that prepares objects; None for studies without any."""
    axes: tuple[Axis, ...] = ()
    design: Design = "full"
    cells: tuple[NamedCell, ...] = ()
    """Cells of the design ``list``."""
    controls: tuple[NamedCell, ...] = ()
    """Cells that all designs run in addition."""
    unsupported: tuple[Unsupported, ...] = ()
    metrics: tuple[Metric, ...]
    pivot: str = ""
    """Axis with values that become columns of the table, with all metrics."""
    hypotheses: tuple[Hypothesis, ...] = ()
    published: tuple[PublishedRow, ...] = ()
    checks: tuple[Check, ...] = ()
    """Checks of the published rows."""
    errata: tuple[str, ...] = ()
    plot: Plot | None = None
    text: str
    """Text of the file."""

    def axis(self, name: str) -> Axis:
        """Return an axis by name; the loader has checked that it exists."""
        return next(axis for axis in self.axes if axis.name == name)

    def metric(self, name: str) -> Metric:
        """Return a metric by name; the loader has checked that it exists."""
        return next(metric for metric in self.metrics if metric.name == name)
