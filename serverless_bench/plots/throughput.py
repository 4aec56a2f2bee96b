"""All functions' throughput together, over time."""

from matplotlib.axes import Axes

from serverless_bench.archive import Run
from serverless_bench.plots.style import color_of
from serverless_bench.series import timeline
from serverless_bench.units import NS_PER_S

_SEGMENTS = 120


def draw_throughput(run: Run, axes: Axes) -> None:
    """Draw bytes moved in each segment of time, from the progress inside each object.

    The area below the line is the bytes of the run.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw.
    """
    axes.set_xlabel("seconds since the first byte was asked for")
    axes.set_ylabel("MB/s")
    axes.set_title("aggregate throughput")
    try:
        whole = timeline(run)
    except ValueError:
        return
    span_ns = whole.end_ns - whole.start_ns
    step_ns = max(NS_PER_S // 10, span_ns // _SEGMENTS)
    series = timeline(run, segment_ns=step_ns)
    axes.stairs(
        series.bytes_per_s / 1e6,
        [*series.seconds, series.seconds[-1] + step_ns / NS_PER_S],
        color=color_of(run),
        label=f"{run.job.workload}, {step_ns / NS_PER_S:.1f} s steps",
        fill=True,
        alpha=0.5,
    )
    # By hand: the second run on these axes may reach higher than the first.
    axes.set_ylim(0, max(axes.get_ylim()[1], float(series.bytes_per_s.max()) / 1e6 * 1.05))
    axes.legend(loc="upper right")
