"""What an experiment's file says, as values; docs/experiments/README.md explains its keys.

``loading`` reads a file into these, and refuses what is not declared here. ``contradictions``
says which published rows do not agree with the checks that a file asks for.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct, structs

from serverless_bench.job.types import at_least, at_most, wrong
from serverless_bench.statistics.ratio import MIN_BLOCKS
from serverless_bench.statistics.verdict import THRESHOLD
from serverless_bench.studies import MAX_REPEATS, Design


class BaseCheck(Struct, frozen=True, kw_only=True, tag_field="kind", tag=str.lower):
    """What all of them say."""

    text: str
    """What a contradiction means."""
    where: Mapping[str, str | int | float | bool] = {}
    """Only rows at these values of axes."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The metrics that it is about."""
        given = structs.asdict(self)
        named = (
            given.get(field, ()) for field in ("metric", "failed", "time", "metrics", "others")
        )
        return tuple(name for one in named for name in ([one] if isinstance(one, str) else one))

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The axes that it names."""
        along = structs.asdict(self).get("along")
        return (*self.where, along) if along else tuple(self.where)


class Grows(BaseCheck, frozen=True, kw_only=True):
    """A time must not fall where the work grows."""

    metric: str
    along: str
    """Axis of numbers or sizes."""


class Link(BaseCheck, frozen=True, kw_only=True):
    """No row may move more bytes per second than its network carries."""

    metric: str
    """A rate of bytes, operations per second, or a time."""
    most: float
    unit: str
    """Of ``most``: of bytes per second."""
    along: str = ""
    """Axis of sizes: how many bytes an operation, or the time, is for."""
    bytes: int = 0
    """The same of all rows, where no axis says it."""


class Failures(BaseCheck, frozen=True, kw_only=True):
    """What failed is no throughput."""

    metric: str
    """A rate that counts whatever was tried."""
    failed: str
    """The share of it that failed, another metric."""


class Repeats(BaseCheck, frozen=True, kw_only=True):
    """What are different things do not have all figures alike: rows, or columns of one row."""

    metrics: tuple[str, ...]
    along: str = ""
    """Axis in which rows differ."""
    others: tuple[str, ...] = ()
    """As many metrics of the same row, in place of an axis."""


class Amount(BaseCheck, frozen=True, kw_only=True):
    """A rate times its time is what was done."""

    metric: str
    """The rate."""
    time: str
    """Another metric."""
    along: str = ""
    amounts: Mapping[str, float] = {}
    """By value of ``along``: what was done; without it, the same in all rows."""


class Order(BaseCheck, frozen=True, kw_only=True):
    """Figures of one row must not fall in this order, as percentiles must not."""

    metrics: tuple[str, ...]


Check = Amount | Failures | Grows | Link | Order | Repeats
KINDS: Final[Mapping[str, type[Check]]] = {kind.__name__.lower(): kind for kind in get_args(Check)}
"""By what a file calls them."""


def kind_of(check: Check) -> str:
    """Return what a file calls a check."""
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
"""How much one of each is in the unit of figures: bytes, seconds, shares."""
RATES: Final = frozenset(unit for unit in UNITS if unit.endswith(("/s", "bps")))
"""Units of bytes per second."""

Value = str | int | float | bool
"""Of an axis."""
Setting = Value | tuple[Value, ...] | None
Settings = Mapping[str, Setting]
"""By dotted name, as in ``mix.get``; ``settings`` knows the names."""
Figure = float | str | tuple[float, float]
"""As published: a number, words, or a range."""
_MOST: Final = 1e12
"""Of anything that a scale has a number for."""
_MOST_DIGITS: Final = 12
_APPROXIMATELY: Final = re.compile(r"~(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?")
"""As in ``~1.2`` and ``~4-5``."""


class Publication(Struct, frozen=True, kw_only=True):
    """Where the published figures come from."""

    source: str
    date: str
    url: str = ""
    setup: str = ""
    """Machine, store and network, as far as they are known."""


class Scale(Struct, frozen=True, kw_only=True):
    """How large the experiment is."""

    about: str = ""
    min_bytes: int
    """A run that moves less is no evidence."""
    repeats: int = MIN_BLOCKS
    """Rounds; in each, every cell runs once."""
    minutes: float = 0.0
    """More rounds, as many as fit into it by the pilots; 0 for no more."""
    seconds: float = 0.0
    """How long a run lasts at most; 0 for as long as its objects take."""
    standard_error: float = 0.03
    """Of its rate: a cell that a pilot run knows so well in less time takes less."""
    settings: Settings
    """Of every cell, unless an axis or the cell itself says otherwise."""

    def __post_init__(self) -> None:
        check_repeats(self.repeats)
        for name in ("minutes", "seconds", "standard_error"):
            if not 0 <= getattr(self, name) <= _MOST:
                raise wrong(name, f"must be between 0 and {_MOST:g}, got {getattr(self, name):g}")


def check_repeats(repeats: int) -> None:
    """Refuse a number of rounds that no experiment has.

    Raises
    ------
    UsageError
        If it is none.
    """
    at_least("repeats", repeats, 1)
    at_most("repeats", repeats, MAX_REPEATS)


class Axis(Struct, frozen=True, kw_only=True):
    """One thing that is varied."""

    name: str
    header: str
    setting: str
    """What each value is put into."""
    values: Mapping[str, tuple[Value, ...]]
    """By scale."""
    levels: Mapping[str, Mapping[str, Settings]] = {}
    """Values that stand for several settings at once: by their text, and by scale."""
    baseline: Mapping[str, Value] = {}
    """By scale: its value while another axis is varied; the first, if the file does not say."""
    paired: bool = False
    """Whether the i-th small value stands for the i-th one of the paper."""


class NamedCell(Struct, frozen=True, kw_only=True):
    """A cell that sets several axes and settings at once."""

    name: str
    at: Mapping[str, Mapping[str, Setting]]
    """By scale; axes by name, everything else is a setting."""


class Unsupported(Struct, frozen=True, kw_only=True):
    """Cells that cannot be: they stand in the table with the reason, and are not run."""

    at: Mapping[str, Value] = {}
    reason: str


class Metric(Struct, frozen=True, kw_only=True):
    """A column of the published table."""

    name: str
    header: str
    of: str
    """A figure of a run, see ``figures``."""
    unit: str = ""
    for_bytes: int = 0
    """Scaled from what a run moved to so many bytes; 0 for the figure as it is."""
    digits: int | None = None
    """After the decimal point; None for three that count."""
    better: Literal["more", "less"] = "more"
    relative: Literal["", "speedup", "efficiency", "change"] = ""
    """What it is in relation to the first value of an axis; empty for the figure itself."""
    to: str = ""
    """That axis."""

    def __post_init__(self) -> None:
        if self.digits is not None:
            at_least("digits", self.digits, 0)
            at_most("digits", self.digits, _MOST_DIGITS)


class Hypothesis(Struct, frozen=True, kw_only=True):
    """A claim, and how it is tested."""

    id: str
    text: str
    test: Literal["faster", "slower", "same", "no-gain", "linear", "proportional", "law", "knee"]
    """What is said of the second value of a segment, seen from the first; ``law`` and ``knee``
    are of a whole line."""
    metric: str
    along: str
    """Axis that the segments lie on."""
    segments: Literal["neighbours", "first"] | tuple[tuple[Value, Value], ...] = "neighbours"
    """Each value against the one before it; each against the first; or these pairs."""
    where: Mapping[str, Value] = {}
    """Only cells with these values."""
    across: str = ""
    """For ``knee``: the knee is the same for all values of this axis."""
    expect: Value | None = None
    """For ``knee``: where it is claimed to be; for ``law``: ``flat`` or ``in proportion``."""
    threshold: float = THRESHOLD
    """Relative difference from which on it matters."""
    published: str = ""
    """What was found, in the publication's words."""


class PublishedRow(Struct, frozen=True, kw_only=True):
    """A published row."""

    cell: str = ""
    """Name of the cell, for those that have one."""
    at: Mapping[str, Value] = {}
    """By axis, in the values of the paper."""
    values: Mapping[str, Figure]
    """By metric."""
    note: str = ""

    @property
    def label(self) -> str:
        """Its cell's name, or its values, for people."""
        return self.cell or " ".join(f"{name}={value}" for name, value in self.at.items())

    def range(self, metric: str) -> tuple[float, float, float] | None:
        """Return the middle of a figure, and the ends of its range; None for words."""
        value = self.values.get(metric)
        if isinstance(value, str) and (match := _APPROXIMATELY.fullmatch(value)):
            value = (float(match[1]), float(match[2] or match[1]))
        if value is None or isinstance(value, str):
            return None
        low, high = value if isinstance(value, tuple) else (value, value)
        return (low + high) / 2, low, high


class Plot(Struct, frozen=True, kw_only=True):
    """How the picture is drawn."""

    kind: Literal["lines", "bars", "operations", "runs"] = "lines"
    """``operations``: the rate of each by its number and bytes; ``runs``: as ``sbench plot``."""
    x: str = ""
    """An axis."""
    y: str = ""
    """A metric."""
    series: str = ""
    """An axis: a line for each of its values."""
    log: bool = False
    """Whether x doubles from one tick to the next."""
    log_y: bool = False
    """Of lines: whether equal ratios are equally high, in both panels on one scale."""


class Experiment(Struct, frozen=True, kw_only=True):
    """A study: what to run, what to look at, what was claimed and published."""

    name: str
    title: str
    question: str
    null_hypothesis: str
    seed: Publication
    scales: Mapping[str, Scale]
    prepare: Mapping[str, Settings] | None = None
    """By scale: of the write that makes what is read; None for experiments that need none."""
    axes: tuple[Axis, ...] = ()
    design: Design = "full"
    cells: tuple[NamedCell, ...] = ()
    """Run by the design ``list``."""
    controls: tuple[NamedCell, ...] = ()
    """Run by every design, beside its cells."""
    unsupported: tuple[Unsupported, ...] = ()
    metrics: tuple[Metric, ...]
    pivot: str = ""
    """Axis whose values are columns of the table, one for each metric."""
    hypotheses: tuple[Hypothesis, ...] = ()
    published: tuple[PublishedRow, ...] = ()
    checks: tuple[Check, ...] = ()
    """What the published rows must agree with."""
    errata: tuple[str, ...] = ()
    plot: Plot | None = None
    text: str
    """The file."""

    def axis(self, name: str) -> Axis:
        """Return an axis by its name; the loader has checked that it is there."""
        return next(axis for axis in self.axes if axis.name == name)

    def metric(self, name: str) -> Metric:
        """Return a metric by its name; the loader has checked that it is there."""
        return next(metric for metric in self.metrics if metric.name == name)
