"""Every experiment runs at its small scale on real parts, and prints the seed's table.

CI runs parts of three of them, all of them are in ``make full``.
"""

import json

import pytest

from serverless_bench.experiments.loading import load_experiment, names
from tests.command import Done, Sbench


def judged(name: str, done: Done) -> None:
    """Check what any report of an experiment has to have."""
    assert done.code == 0, done.err
    report = json.loads(done.out)
    experiment = load_experiment(name)
    assert report["name"] == name
    assert report["complete"]
    columns = {metric.name for metric in experiment.metrics}
    ran = [cell for cell in report["cells"] if not cell["skipped"]]
    assert ran
    for cell in ran:
        assert cell["counted"] == cell["planned"] >= 5
        assert set(cell["metrics"]) == columns


@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("s3-client-threads", ("threads=8",)),
        ("sai3-prestat", ("size=1MiB", "stat=on")),
        ("zarr-writers-append", ("target=s3", "library=tensorstore")),
    ],
)
def test_a_part_of_an_experiment(sbench: Sbench, name: str, only: tuple[str, ...]) -> None:
    flags = [word for part in only for word in ("--only", part)]
    short = ("--seconds", "0.3", "--repeats", "5")
    judged(name, sbench("exp", "run", name, *flags, *short, "--format", "json"))


@pytest.mark.full
@pytest.mark.parametrize("name", names())
def test_a_whole_experiment(sbench: Sbench, name: str) -> None:
    judged(name, sbench("exp", "run", name, "--seconds", "1", "--format", "json"))
