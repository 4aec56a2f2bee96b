"""Rigs whose truth is known and on which a sentence once was wrong, with variations."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import serverless_bench as sb
from serverless_bench.base.process import environment
from serverless_bench.features.custom.load import FunctionLoad
from serverless_bench.features.custom.pickling import pack
from serverless_bench.features.why.cause import BoundBy
from tests.stores.servers import KEYS, loopback
from tests.twice import two_of_three
from tests.verdicts import namespace, why
from tests.verdicts.proxy import Behaviour, proxy_of

pytestmark = [pytest.mark.timing, pytest.mark.full]


@contextmanager
def store(path: Path, *flags: str, **behaviour: Any) -> Iterator[sb.Target]:
    """Yield a store that makes up any object, behind a proxy of this behaviour."""
    with (
        environment(KEYS),
        loopback("--check", "none", *flags, log=path / "log") as server,
        proxy_of(server.endpoint_url, Behaviour(**behaviour)) as url,
    ):
        yield sb.Target(bucket="test", endpoint_url=url, region="us-east-1")


def limit_of(path: Path, target: sb.Target, **more: Any) -> sb.Limit:
    both: dict[str, Any] = {"number": 2, "concurrency": 2, "size": 1024}
    threads = more.pop("threads", 32)
    load = sb.Load(threads=threads)
    job = sb.JobSpec(workload="write", target=target, objects=threads, load=load, **both)
    return sb.limit(job, path, p99_s=0.3, **more)


class Fresh:
    """A new directory for each try."""

    def __init__(self, parent: Path) -> None:
        self._parent, self._count = parent, 0

    def __call__(self) -> Path:
        self._count += 1
        path = self._parent / f"try-{self._count}"
        path.mkdir()
        return path


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    return Fresh(tmp_path)


@pytest.mark.parametrize("stalls_s", [(60, 2.0), (30, 1.0), (20, 0.8), (40, 1.5)])
def test_no_level_holds_where_the_store_stalls(fresh: Fresh, stalls_s: tuple[float, float]) -> None:
    def check() -> None:
        path = fresh()
        with store(path, stalls_s=stalls_s) as target:
            found = limit_of(path / "limit", target, lowest=50, highest=400, budget_s=240)
        assert found.limit is None, str(found)
        assert "holds" not in {row.verdict for row in found.rows}, str(found)
        assert found.ended not in {"precision", "highest"}

    two_of_three(check)


@pytest.mark.parametrize("stalls_s", [(4, 1.2), (3, 0.8), (6, 2.0)])
@pytest.mark.parametrize("threads", [4, 16])
def test_a_store_that_stalls_above_a_rate_is_no_limit_of_the_load(
    fresh: Fresh, stalls_s: tuple[float, float], threads: int
) -> None:
    def check() -> None:
        path = fresh()
        with store(path, stalls_s=stalls_s, stalls_above_per_s=150, latency_s=0.01) as target:
            found = limit_of(
                path / "limit", target, threads=threads, lowest=60, highest=300, budget_s=160
            )
        assert not found.load_limited, str(found)

    two_of_three(check)


@pytest.mark.parametrize(
    "rig", ["own pace", "own producer", "own threads", "latency parquet", "latency mixed"]
)
def test_why_names_the_truth_or_nothing(fresh: Fresh, rig: str) -> None:
    def check() -> None:
        with environment(KEYS):
            answer = why.check(rig, fresh())
        named = {*answer.cause.names}
        shared = {BoundBy.MACHINE, BoundBy.CPU}
        assert not named or named & ({*why.RIGS[rig].truth} | shared), answer.sentence
        assert "0 blocks more" not in answer.sentence
        assert not answer.failed()

    two_of_three(check)


@pytest.mark.parametrize("latency_ms", [40, 55])
def test_larger_objects_are_not_called_no_help_where_they_help(
    fresh: Fresh, latency_ms: int
) -> None:
    """A round trip of this time beside 64 KiB at 1 MiB/s: larger objects move more bytes."""

    def check() -> None:
        path = fresh()
        flags = ("--latency", f"fixed:{latency_ms}ms", "--connection-rate", "1MiB")
        with store(path, *flags) as target:
            job = sb.JobSpec(
                workload="read",
                target=target,
                number=2,
                concurrency=2,
                objects=2,
                load=sb.Load(threads=2),
            )
            keys = [f"sbench/{number:032x}.{1 << 16}" for number in range(4)]
            answer = sb.why(job, path / "why", keys=keys, budget_s=60)
        assert "No help: larger objects" not in answer.sentence, answer.sentence

    two_of_three(check)


@pytest.mark.parametrize("code", [why.sleeping_threads, why.producing])
def test_own_threads_are_not_known_to_wait_for_answers(fresh: Fresh, code: Any) -> None:
    def check() -> None:
        path = fresh()
        with store(path, "--latency", "fixed:20ms") as target:
            load = FunctionLoad(code=pack(code))
            both: dict[str, Any] = {"number": 4, "concurrency": 4, "objects": 16, "size": 1 << 14}
            job = sb.JobSpec(
                workload="custom",
                target=target,
                load=load,
                duration=5.0,
                **both,
            )
            found = sb.summarize(sb.run_job(job, path / "run")).parts["bottleneck"]
        assert not {"answers", "rate_limit", "store_or_network"} & found.functions.keys(), found

    two_of_three(check)


@pytest.mark.parametrize("pause_ms", [50, 100, 200, 240, 300])
@pytest.mark.parametrize("size", [1 << 15, 1 << 16])
def test_a_pause_inside_a_body_is_no_rate_of_bytes(fresh: Fresh, pause_ms: int, size: int) -> None:
    def check() -> None:
        path = fresh()
        with store(path, body_pause_s=pause_ms / 1000) as target:
            job = sb.JobSpec(
                workload="read", target=target, number=4, concurrency=4, objects=4, duration=4.0
            )
            keys = [f"sbench/{number:032x}.{size}" for number in range(16)]
            found = sb.summarize(sb.run_job(job, path / "run", keys=keys)).parts["bottleneck"]
        assert "rate_limit" not in found.functions, found
        assert found.flow_share is not None
        assert found.flow_share < 0.5

    two_of_three(check)


@pytest.mark.parametrize("size", [4096, 8192])
def test_small_objects_in_a_full_network_are_not_the_stores_alone(fresh: Fresh, size: int) -> None:
    if (reason := namespace.missing()) is not None:
        pytest.skip(reason)

    def check() -> None:
        path = fresh()
        rig = why.Rig(truth=(BoundBy.PIPE,), namespace="pipe", size=size, threads=16)
        with environment(KEYS), why.store_of(rig, path) as url:
            job = why.job_of(rig, url)
            text = str(sb.summarize(sb.run_job(job, path / "run")))
        if "waiting for answers" in text:
            assert "full network" in text, text

    two_of_three(check)
