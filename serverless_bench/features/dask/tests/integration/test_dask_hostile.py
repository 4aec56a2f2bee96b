"""A Dask cluster that attacks: no code of its workers or scheduler runs on the driver's side."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from serverless_bench.features.loopback.server import LoopbackServer, serving
from tests.clouds.dask_clusters import ROOT, running_cluster
from tests.commands.command import Done, Sbench
from tests.stores.servers import KEYS

HOSTILE = str(ROOT / "tests" / "clouds" / "hostile_dask.py")
PRELOADED = dict.fromkeys(
    ("DASK_DISTRIBUTED__WORKER__PRELOAD", "DASK_DISTRIBUTED__SCHEDULER__PRELOAD"), HOSTILE
)


@pytest.fixture(scope="module")
def store() -> Iterator[LoopbackServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that describes the cluster's attack."""
    file = tmp_path_factory.mktemp("attack") / "attack"
    file.touch()
    return file


@pytest.fixture(scope="module")
def scheduler(attack: Path) -> Iterator[str]:
    """Return the address of a cluster with one slot, which attacks as described."""
    more = {**KEYS, **PRELOADED, "SBENCH_TEST_ATTACK": str(attack)}
    with running_cluster(attack.parent / "cluster", more, 1) as cluster:
        yield cluster.address


INVALID = "sent an invalid description"
CANNOT_RUN = "cannot run this sbench"
NO_CODE = "a pickle of the cluster names code"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("description", CANNOT_RUN),
        ("probe in other words", "sent an invalid answer to the probe"),
        ("greeting", NO_CODE),
        ("words of a worker", NO_CODE),
        pytest.param("failure to describe", CANNOT_RUN, marks=pytest.mark.full),
        pytest.param("description of others", INVALID, marks=pytest.mark.full),
        pytest.param("nested description", INVALID, marks=pytest.mark.full),
        pytest.param("probe", CANNOT_RUN, marks=pytest.mark.full),
        pytest.param("slots", NO_CODE, marks=pytest.mark.full),
        pytest.param("error", "no Dask cluster: ", marks=pytest.mark.full),
    ],
)
def test_an_answer_runs_no_code(
    tmp_path: Path, attack: Path, scheduler: str, store: LoopbackServer, kind: str, says: str
) -> None:
    begin(attack, kind)
    done = write(tmp_path, scheduler, store)
    assert ran(attack) == []
    assert done.code == 4
    assert says in done.err


@pytest.mark.parametrize(
    ("kind", "code", "flags"),
    [
        ("answers", 6, ()),
        ("messages", 0, ()),
        # These refusals are not reported.
        pytest.param("errors", 6, ("--start-timeout", 1), marks=pytest.mark.full),
    ],
)
def test_unrequested_messages_run_no_code(
    tmp_path: Path,
    attack: Path,
    scheduler: str,
    store: LoopbackServer,
    kind: str,
    code: int,
    flags: Sequence[str | int],
) -> None:
    """Nor does it affect the terminal."""
    begin(attack, kind)
    done = write(tmp_path, scheduler, store, *flags)
    assert ran(attack) == []
    assert done.code == code, done.err
    assert "\x1b" not in done.out + done.err
    assert ("printed by the cluster" in done.out) == (kind == "answers"), "the reason of a refusal"


def write(place: Path, scheduler: str, store: LoopbackServer, *flags: str | int) -> Done:
    job = ("--endpoint-url", store.endpoint_url, "--bucket", "any", "--number", 1, "--size", "1KiB")
    sbench = Sbench(place, KEYS)
    return sbench("write", "--executor", "dask", "--scheduler", scheduler, *job, *flags)


def begin(attack: Path, kind: str) -> None:
    attack.with_suffix(".ran").unlink(missing_ok=True)
    attack.write_text(kind)


def ran(attack: Path) -> list[str]:
    """Return which processes outside of the cluster have run its code."""
    notes = attack.with_suffix(".ran")
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [line for line in lines if "tests.clouds.dask_clusters" not in line]
