"""The reducers agree with a reference that computes every figure in the most obvious way.

The reference (``tests/reference``) reads the rows of a run directory itself and shares no code
with the package. Both agree exactly in integers and texts, and to 1e-9 in other figures; windows
may be off by a byte for each border of a window in each stretch of a curve.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docs.make_report import defined
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import load_run
from tests.house.members import EVERY_WORKLOAD, uses
from tests.reference.contention import CHECKED_ELSEWHERE
from tests.reference.making import Shape, save, shapes
from tests.reference.report import NOT_HERE, reference
from tests.reference.shuffling import PLANNED
from tests.reference.throughput import Near

LIMITED_AND_NOT_IDLE = Shape(
    seed=68, functions=3, operations=1, traits=frozenset({"straight", "threads"})
)
"""Three functions with one rate; the client time of one of them is unknown."""
REPORT = set(defined()["report"])


def agree(shape: Shape, *, with_warmup: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        save(path, shape)
        agree_on(path, shape, with_warmup=with_warmup)


def agree_on(path: Path, shape: object, *, with_warmup: bool) -> None:
    ours = summarize(load_run(path), with_warmup=with_warmup).to_json()
    theirs = reference(path, with_warmup=with_warmup)
    brief = summarize(load_run(path, detail=False), with_warmup=with_warmup).to_json()
    assert without_keys(brief) == without_keys(ours)
    # Words are for people: as many reasons are as many.
    assert len(ours.pop("withheld")) == len(theirs.pop("withheld")), shape
    if "bill" in ours:
        for name in NOT_HERE:
            ours["bill"].pop(name)
    if "contention" in ours:
        for name in CHECKED_ELSEWHERE:
            ours["contention"].pop(name)
    for row in ours.get("shuffle", {"phases": ()})["phases"]:
        for name in PLANNED:
            row.pop(name)
    # Through JSON, as users have it.
    assert list(differences("", json.loads(json.dumps(ours, allow_nan=False)), theirs)) == []


def without_keys(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a report that needs no keys; `sbench report` loads none."""
    found = {name: value for name, value in report.items() if name != "throttled_by_prefix"}
    if "bill" in found:
        found["bill"] = {n: v for n, v in found["bill"].items() if n != "storage_per_h"}
    return found


def differences(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    """Yield a line for each figure in which two reports differ."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for name in {*ours, *theirs}:
            if name not in ours or name not in theirs:
                yield f"{path}.{name}: only in {'ours' if name in ours else 'theirs'}"
            else:
                yield from differences(f"{path}.{name}", ours[name], theirs[name])
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} and {len(theirs)}"
        for number, pair in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(f"{path}[{number}]", *pair)
    elif not same(ours, theirs):
        yield f"{path}: {ours} and {theirs}"


def same(ours: Any, theirs: Any) -> bool:
    off = Fraction(0)
    if isinstance(theirs, Near):
        theirs, off = theirs.value, theirs.off
    if isinstance(theirs, Fraction) and isinstance(ours, int | float):
        return abs(Fraction(ours) - theirs) <= off + abs(theirs) / 10**9
    return type(ours) is type(theirs) and bool(ours == theirs)


@uses(*EVERY_WORKLOAD)
@settings(max_examples=200)
@given(shapes, st.booleans())
@example(LIMITED_AND_NOT_IDLE, False)  # noqa: FBT003 - as it is drawn
def test_both_reducers_say_the_same(shape: Shape, with_warmup: bool) -> None:  # noqa: FBT001
    agree(shape, with_warmup=with_warmup)


@pytest.mark.full
@settings(max_examples=10_000)
@given(shapes, st.booleans())
def test_both_reducers_say_the_same_of_many_runs(shape: Shape, with_warmup: bool) -> None:  # noqa: FBT001
    agree(shape, with_warmup=with_warmup)


@uses("feature cost")
def test_the_reference_has_every_field(tmp_path: Path) -> None:
    fields = set[str]()
    for operations, traits in (
        (2, {"far", "barrier", "hedged", "memory", "neighbours"}),
        (4, {"existing", "scanned"}),
        (4, {"shuffled"}),
        (4, {"listed"}),
        (4, {"contended"}),
        (3, {"few at once", "metrics", "stopped", "timed"}),
    ):
        path = tmp_path / min(traits)
        save(path, Shape(seed=1, functions=4, operations=operations, traits=frozenset(traits)))
        fields |= set(reference(path))
    assert fields == REPORT, "tests/reference computes each field, and a shape above has it"
