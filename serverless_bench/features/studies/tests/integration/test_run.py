"""Every study runs at its small scale on real parts, and prints the seed's table.

CI runs parts of three of them, all of them are in ``make full``.
"""

import json

import pytest

from serverless_bench.features.studies import names
from serverless_bench.features.studies.loading import load_study
from tests.commands.command import Done, Sbench
from tests.twice import two_of_three

pytestmark = pytest.mark.on_change(
    "serverless_bench/features/studies", "serverless_bench/features/loopback"
)


def judged(name: str, done: Done) -> None:
    """Check the parts that any report of a study must have."""
    assert done.code == 0, done.err
    report = json.loads(done.out)
    study = load_study(name)
    assert report["name"] == name
    assert report["complete"]
    columns = {metric.name for metric in study.metrics}
    ran = [cell for cell in report["cells"] if not cell["skipped"]]
    assert ran
    for cell in ran:
        assert cell["counted"] == cell["planned"] >= 5
        assert set(cell["metrics"]) == columns


@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("s3-client-threads", ("threads=8",)),
        ("skyrise-latency", ("first=counted", "operation=GET")),
        ("sai3-prestat", ("size=1MiB", "stat=on")),
        ("zarr-writers-append", ("target=s3", "library=tensorstore")),
        ("zarr-reader-concurrency", ("reader=zarr", "concurrency=10")),
    ],
)
def test_a_part_of_a_study(sbench: Sbench, name: str, only: tuple[str, ...]) -> None:
    flags = [word for part in only for word in ("--only", part)]
    short = ("--run-duration", "0.3", "--repeats", "6")
    judged(name, sbench("study", "run", name, *flags, *short, "--format", "json"))


@pytest.mark.full
@pytest.mark.timing
@pytest.mark.parametrize(
    ("size", "quota", "law"),
    [
        ("24MiB", 625, "the law: flat"),
        ("48MiB", 3000, "the law: in proportion"),
        ("8MiB", 3000, "the burst hides the rate"),
    ],
)
def test_the_law_of_a_network(sbench: Sbench, size: str, quota: int, law: str) -> None:
    """Both laws are distinguished; objects within the burst give no verdict.

    If the rates vary too much, as on a busy machine, the report says so, and never names the
    other law. The tests in tests/unit check decisions on given figures.
    """
    smaller = ("--set", "serve.function_scale=0.05", "--set", f"size={size}", "--repeats", 6)
    ends = ("--only", "memory=2048,10240", "--only", f"quota={quota}")

    def check() -> None:
        done = sbench("study", "run", "lambda-network", *ends, *smaller, "--format", "json")
        assert done.code == 0, done.err
        first, _ = json.loads(done.out)["hypotheses"]
        (found,) = first["judgements"]
        busy = (
            ("too much spread", "the store is the bottleneck") if law.startswith("the law") else ()
        )
        assert any(why in found["why"] for why in (law, *busy)), found["why"]

    two_of_three(check)


@pytest.mark.full
@pytest.mark.parametrize("name", names())
def test_a_whole_study(sbench: Sbench, name: str) -> None:
    judged(name, sbench("study", "run", name, "--run-duration", "1", "--format", "json"))
