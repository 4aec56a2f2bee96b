"""The seal of a run's header detects any change of the header."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.base.errors import ArchiveError
from serverless_bench.driver import origin
from serverless_bench.rundir.run import SCHEMA
from tests.fuzz.mutations import CASES, mutated

RECORDED = Path(__file__).parents[2] / "recorded/lambda/run.json"
HEADER: dict[str, Any] = {
    name: value for name, value in json.loads(RECORDED.read_text()).items() if name != "schema"
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def written(run: Path, header: Any) -> bytes:
    """Write a header, and return its bytes with sorted names."""
    data = json.dumps(header, allow_nan=False).encode()
    (run / "run.json").write_bytes(data)
    return orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS)


def test_a_header_as_it_was_made_is_ours_in_any_order(run: Path) -> None:
    sealed = origin.sealed({"schema": SCHEMA, **HEADER})
    written(run, dict(reversed(sealed.items())))
    assert origin.is_ours(run)


@settings(max_examples=CASES)
@given(st.data())
def test_any_change_invalidates_the_seal(run: Path, data: st.DataObject) -> None:
    sealed = origin.sealed({"schema": SCHEMA, **HEADER})
    same = written(run, sealed)
    spoiled = data.draw(mutated(sealed))
    try:
        now = written(run, spoiled)
    except (ValueError, TypeError):
        # Invalid JSON, or JSON that orjson does not read.
        return
    try:
        assert origin.is_ours(run) == (now == same)
    except ArchiveError:
        assert now != same


def test_deep_nesting_invalidates_the_seal(run: Path) -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    written(run, origin.sealed({"schema": SCHEMA, **HEADER}))
    (run / "run.json").write_text(
        json.dumps({"schema": SCHEMA, **HEADER, "x": deep, "origin": "0"})
    )
    assert not origin.is_ours(run)
