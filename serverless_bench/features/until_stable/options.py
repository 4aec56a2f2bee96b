"""The setting of the stopping rule."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.base.units import parse_share
from serverless_bench.job.abilities import Untimed
from serverless_bench.job.meaning import Meaning, Options
from serverless_bench.job.types import check_types, wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingOptions(Options):
    """The precision that ends a run.

    Parameters
    ----------
    until_stable
        End the run before ``duration`` once the interval of its rate is this narrow: half the
        width over the rate; of remote functions it is that of a sample.
    """

    until_stable: Annotated[
        float | None,
        Meaning(
            "End before --duration, after 30 s or more, once the interval of the rate is this"
            " narrow: half the width over the rate, as in 2%.",
            parse=parse_share,
            section="Workload",
            after="duration",
            without=Untimed,
        ),
    ] = None

    def __post_init__(self) -> None:
        check_types(self)
        if self.until_stable is not None and not 0 < self.until_stable < 0.5:
            raise wrong(
                "until_stable",
                f"must be above 0 and below 0.5, got {self.until_stable:g}",
                hint="it is half the width of the interval over the rate, such as 0.02",
            )
