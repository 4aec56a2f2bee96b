"""Functions on this machine open no port, and show no data to other users."""

from pathlib import Path

from tests.commands.command import Apart
from tests.commands.other_user import Stranger
from tests.commands.processes import Family, listening, unix_sockets, until
from tests.house.members import uses
from tests.stores.servers import KEYS, loopback


def check_closed(family: Family, nobody: Stranger) -> None:
    pids = [one.pid for one in family.members()]
    assert pids
    assert listening(*pids) == []
    assert unix_sockets(*pids) == []
    for pid in pids:
        assert nobody.kill(pid) == "PermissionError"
        for inside in ("environ", "fd", "mem", "cwd"):
            assert nobody.reaches(f"/proc/{pid}/{inside}") == []


def test_workers_of_the_local_executor(open_place: Path, nobody: Stranger) -> None:
    family = Family()
    place = open_place / "local"
    place.mkdir()
    alone = Apart(place, {**KEYS, **family.mark})
    # So slow that they are still active.
    with loopback("--connection-rate", "0.1MiB", log=place / "log") as store:
        run = alone.start(
            *("write", "--endpoint-url", store.endpoint_url, "--bucket", "any"),
            *("--number", "2", "--concurrency", "2", "--mb", "4"),
        )
        until(lambda: len([w for w in family.workers() if w.net_connections("tcp")]) == 2)
        check_closed(family, nobody)
        run.kill()
        run.communicate()
        assert until(family.gone)


@uses("executor workers")
def test_a_worker_that_waits_for_events(open_place: Path, nobody: Stranger) -> None:
    family = Family()
    alone = Apart(open_place, {**KEYS, **family.mark})
    with loopback(log=open_place / "log") as store:
        worker = alone.start(
            "worker", "--control", "s3://any/control/", "--endpoint-url", store.endpoint_url
        )
        assert worker.stdout is not None
        assert "takes events from s3://any/control/" in worker.stdout.readline()
        check_closed(family, nobody)
        worker.terminate()
        worker.communicate()
