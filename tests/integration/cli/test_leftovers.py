"""Objects of a series that the store does not delete."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from serverless_bench.features.loopback.server import serving
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.hostile import hostile, says, sometimes
from tests.stores.servers import KEYS

WORDS = b"not authorized to perform: s3:DeleteObject"
DENIED = b"<Error><Code>AccessDenied</Code><Message>" + WORDS + b"</Message></Error>"
JOB = 'command = "write"\nexecutor = "inline"\nnumber = 1\nsize = "1kB"\n'


@pytest.fixture
def where() -> Iterator[Mapping[str, str]]:
    """The variables that name a store without the permission to delete."""
    with serving() as store:
        denying = sometimes(says(403, DENIED), store.endpoint_url, lambda e: e.method == "DELETE")
        with hostile(denying) as proxy:
            yield {"SBENCH_ENDPOINT_URL": proxy.endpoint_url, "SBENCH_BUCKET": "any"}


@uses("feature ab")
def test_a_series_counts_the_objects_that_stay_and_ends_with_6(
    tmp_path: Path, where: Mapping[str, str]
) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    sbench = Sbench(tmp_path, KEYS)
    few = ("--blocks", 6, "--warm-up-blocks", 0, "--name", "few")
    done = sbench("ab", "job.toml", "job.toml", *few, **where)
    assert done.code == 6, done.out + done.err
    assert "faster" in done.out or "slower" in done.out or "undecided" in done.out
    (text,) = (line for line in done.err.splitlines() if line.startswith("sbench: "))
    assert text.startswith("sbench: 12 objects (")
    assert "AccessDenied" in text
    assert WORDS.decode() in text
    assert "CleanerPolicyArn" in done.err
    assert "sbench clean sbench-runs/few/" in done.err
    kept = sbench("ab", "job.toml", "job.toml", "--keep", *few[:-1], "kept", **where)
    assert (kept.code == 6, "deleted" in kept.err) == (False, False)
    run = next(tmp_path.glob("sbench-runs/few/*/*/run.json")).parent
    cleaned = sbench("clean", run)
    assert cleaned.code == 6
    assert WORDS.decode() in cleaned.err
    assert "CleanerPolicyArn" in cleaned.err


STAGES = """
name = "stages"
[[stages]]
name = "fill"
kind = "prepare"
workload = "write"
executor = "inline"
number = 1
size = "1kB"
[[stages]]
name = "tidy"
kind = "cleanup"
"""


@uses("feature stages")
def test_the_cleanup_of_a_job_file_repeats_the_stores_words(
    tmp_path: Path, where: Mapping[str, str]
) -> None:
    (tmp_path / "job.toml").write_text(STAGES)
    done = Sbench(tmp_path, KEYS)("run", "job.toml", **where)
    assert done.code == 6, done.err
    assert WORDS.decode() in done.err
    assert "CleanerPolicyArn" in done.err
