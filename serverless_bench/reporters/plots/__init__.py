"""Pictures of a run. Each draws on the caller's Axes; ``figure`` puts them together.

Colours are the ones of the PyWren article of 2016: writes green, reads blue.
"""

from serverless_bench.reporters.plots.figure import figure
from serverless_bench.reporters.plots.panels import draw_jobs, draw_latency, draw_rates
from serverless_bench.reporters.plots.throughput import draw_throughput

__all__ = ["draw_jobs", "draw_latency", "draw_rates", "draw_throughput", "figure"]
