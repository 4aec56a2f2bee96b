"""Progress objects of a sample: what is none of ours is left out, and nothing breaks."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from serverless_bench.features.live.layout import BYTES, SLOT_WORDS
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.remote.claims import for_run
from serverless_bench.features.remote.cleaning import CLEANING
from serverless_bench.features.remote.looks import PROGRESS_FOLDER, STOP, progress_name
from serverless_bench.features.remote.sample import ProgressSample
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.worker.object_io import ObjectIO
from tests.stores.servers import KEYS, credentials

RUN = "20260101T000000Z-000000000000"
TIMES = {"begin_ns": 1, "at_ns": 2, "ended": False}
COUNTED = {"counters": {str(BYTES): 7}, **TIMES}


@pytest.fixture
def control() -> Iterator[Target]:
    with serving() as store, credentials(KEYS):
        yield Target(bucket="any", endpoint_url=store.endpoint_url, prefix="control/")


def sample_of(control: Target) -> ProgressSample:
    job = JobSpec(workload="write", target=control, number=1, size=1, control=control)
    return ProgressSample(job.with_options(progress_objects=True), control, RUN, 0)


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"counters": [1]},
        {"counters": {"x": 1}, **TIMES},
        {"counters": {"-1": 1}, **TIMES},
        {"counters": {str(SLOT_WORDS): 1}, **TIMES},
        {"counters": {"0": -1}, **TIMES},
        {"counters": {"0": 1 << 63}, **TIMES},
        {"counters": {"0": True}, **TIMES},
        {**COUNTED, "at_ns": -1},
        {**COUNTED, "begin_ns": 1 << 63},
        {"counters": {}, "ended": False},
    ],
)
def test_an_object_that_is_not_ours_is_left_out(control: Target, content: Any) -> None:
    sample = sample_of(control)
    with closing(ObjectIO(for_run(control, RUN))) as store, closing(sample._io):
        store.put(progress_name(0, 0), json.dumps(content).encode())
        sample._read(0)
        assert sample.board.totals() is None
        store.put(progress_name(0, 0), json.dumps(COUNTED).encode())
        sample._read(0)
    assert sample.board.totals() is not None


def test_only_its_own_keys_are_cleaned(control: Target) -> None:
    folders = CLEANING.control_folders(control, RUN)
    is_ours = next(ours for _, folder, ours in folders if folder == "claims/")
    for key in (STOP, progress_name(3, 1)):
        assert is_ours(key.removeprefix("claims/"))
    for key in (f"{STOP}ped", f"{STOP}/x", PROGRESS_FOLDER[:-1], "claims/other"):
        assert not is_ours(key.removeprefix("claims/"))
