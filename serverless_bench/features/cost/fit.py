"""Parameters of a model from a run, and how well they explain it."""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.units import MIB, NS_PER_S, format_seconds
from serverless_bench.features.cost.bill import conditions_of
from serverless_bench.features.cost.expected import expected
from serverless_bench.features.cost.forecast import ForecastRange
from serverless_bench.features.cost.model import AWS_LAMBDA, LOOPBACK, Model, model_of
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, Mask, is_one_of, is_text

_LEAST: Final = 20
"""Fewest values from which a parameter is fitted."""
_Z90: Final = 1.2816
"""Quantile of a normal law; that of 99 % is 1.815 times as much."""
_REQUESTS: Final = {"put": ("put", "upload_part"), "get": ("get",)}


def fitted(run: Run) -> Iterator[tuple[str, str, float, int]]:
    """Yield the parameters that a run shows: table, name, value, and number of values behind it."""
    functions, operations = run.functions, run.operations
    began = (functions["start_ns"] != ABSENT) & (functions["end_ns"] != ABSENT)
    start_s = (functions["start_ns"] - functions["submitted_ns"]) / NS_PER_S
    is_cold = functions["cold_start"] == 1
    for name, mask in (("cold", began & is_cold), ("warm", began & ~is_cold)):
        yield from _law("launch", name, start_s[mask])
    order = operations["function"]
    first, last = np.full(len(began), np.inf), np.full(len(began), -np.inf)
    np.minimum.at(first, order, operations["start_ns"])
    np.maximum.at(last, order, operations["end_ns"])
    some = began & np.isfinite(first)
    for name, took in (
        ("setup_s", first - functions["start_ns"]),
        ("finish_s", functions["end_ns"] - last),
    ):
        if some.any():
            yield "launch", name, max(0.0, float(np.median(took[some])) / NS_PER_S), some.sum()
    for kind, names in _REQUESTS.items():
        yield from _of_kind(run, kind, is_one_of(run.attempts["request"], names))


def _of_kind(run: Run, kind: str, mask: Mask) -> Iterator[tuple[str, str, float, int]]:
    attempts = run.attempts
    store = "express" if is_directory_bucket(run.job.target.bucket) else "store"
    good = mask & is_text(attempts["error"], None) & (attempts["end_ns"] != ABSENT)
    took_s = (attempts["end_ns"] - attempts["start_ns"]) / NS_PER_S
    wait_s, moved = took_s, np.maximum(attempts["bytes"], 0)
    if kind == "get":
        wait_s = (attempts["answered_ns"] - attempts["start_ns"]) / NS_PER_S
        good &= attempts["answered_ns"] != ABSENT
    # Requests of a MiB show the rate of the connection.
    large = good & (moved >= MIB)
    if (count := int(large.sum())) >= _LEAST:
        rates = moved[large] / np.maximum((took_s - (wait_s if kind == "get" else 0))[large], 1e-6)
        yield "function", f"connection_{kind}_bytes_per_s", float(np.median(rates)), count
    # A large put does not show when its last byte was sent.
    usual = good & (attempts["reused"] == 1) & ((kind == "get") | (moved < MIB))
    yield from _law(store, kind, wait_s[usual])
    opening = good & (attempts["reused"] == 0) & (moved < MIB)
    if usual.sum() >= _LEAST and opening.any():
        more_s = float(np.median(wait_s[opening]) - np.median(wait_s[usual]))
        yield store, "connect_s", max(0.0, more_s), int(opening.sum())


def _law(part: str, name: str, seconds: Floats) -> Iterator[tuple[str, str, float, int]]:
    """Yield median and sigma, and the tail of latencies."""
    count = len(seconds)
    if count < _LEAST:
        return
    middle, high, long = np.percentile(np.maximum(seconds, 1e-6), (50, 90, 99)).tolist()
    sigma = math.log(high / middle) / _Z90
    yield part, f"{name}_s", middle, count
    yield part, f"{name}_sigma", sigma, count
    if part != "launch":
        yield part, f"{name}_tail", 0.01 * (long / middle > (high / middle) ** 1.815), count
        yield part, f"{name}_tail_from", long / middle, count
        # A single run shows no difference between runs.
        yield part, f"{name}_drift_sigma", 0.0, count


def fit(run: Run) -> Iterator[str]:
    """Yield the lines of a parameter file fitted to a run; comments say how it explains the run."""
    base = AWS_LAMBDA if (run.functions["memory_mib"] != ABSENT).any() else LOOPBACK
    day = utc_stamp(run.created_ns, separators=True)[:10]
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for part, name, value, count in fitted(run):
        source = f"run {run.run_id}: {count:,} values"
        tables.setdefault(part, {})[name] = {
            "value": float(f"{value:.4g}"),
            "source": source,
            "date": day,
            "confidence": "fitted",
        }
    model = model_of(run.run_id, base, tables)
    yield f'base = "{base.name}"'
    yield from (f"# {text}" for text in explained(run, model))
    for part, table in tables.items():
        yield ""
        yield f"[{part}]"
        for name, number in table.items():
            items = ", ".join(
                f'{key} = "{text}"' if isinstance(text, str) else f"{key} = {text}"
                for key, text in number.items()
            )
            yield f"{name} = {{ {items} }}"


def explained(run: Run, model: Model) -> Iterator[str]:
    """Yield sentences on how well a model explains a run."""
    found = expected(run.job, conditions_of(run), model)
    functions = run.functions
    began = (functions["start_ns"] != ABSENT) & (functions["end_ns"] != ABSENT)
    if found is None or not began.any():
        yield "The forecast of such a job is unknown."
        return
    start, end = functions["start_ns"][began], functions["end_ns"][began]
    took_s, run_s = (end - start) / NS_PER_S, (end.max() - start.min()) / NS_PER_S
    forecast = ForecastRange.of(found.times.billed_s - model.launch.billed_s)
    whole = ForecastRange.of(found.times.run[0])
    inside = ((forecast.p5 <= took_s) & (took_s <= forecast.p95)).mean()
    usual_s = float(np.median(took_s))
    for what, measured, of in (("function", usual_s, forecast), ("run", run_s, whole)):
        yield (
            f"A {what} took {format_seconds(measured)}, forecast {format_seconds(of.p50)}"
            f" ({format_seconds(of.p5)} to {format_seconds(of.p95)})."
        )
    yield f"{inside:.0%} of the functions lie in their interval; 90% would be expected."
