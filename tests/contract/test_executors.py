from collections.abc import Iterator
from pathlib import Path

import pytest

from serverless_bench.features.loopback.server import serving
from serverless_bench.features.testing.executors import COUNT, ExecutorContract
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import Lost
from tests.clouds.dask_clusters import DaskCluster, running_cluster
from tests.commands.command import Apart, end_started
from tests.stores.servers import KEYS, credentials


class TestInline(ExecutorContract):
    executor = "inline"


class TestLocal(ExecutorContract):
    executor = "local"

    def test_workers_may_die_again_and_again(self) -> None:
        """The end of a worker and the report of it come in any order."""
        outcomes = self.outcomes("fault-kill", number=200)
        lost = [o.result.index for o in outcomes if isinstance(o.result, Lost)]
        assert lost == list(range(1, 200, 4))


@pytest.mark.on_change("launching functions", "serverless_bench/features/lithops")
class TestLithops(ExecutorContract):
    executor = "lithops"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with running_cluster(tmp_path_factory.mktemp("dask"), KEYS, 2) as running:
        yield running


@pytest.mark.on_change("launching functions", "serverless_bench/features/dask")
class TestDask(ExecutorContract):
    executor = "dask"

    @pytest.fixture(autouse=True)
    def store(self, cluster: DaskCluster) -> Iterator[None]:
        self.scheduler = cluster.address
        with serving() as store, credentials(KEYS):
            self.control = Target(bucket="any", prefix="control/", endpoint_url=store.endpoint_url)
            yield

    def job(self, workload: str, *, number: int = COUNT) -> JobSpec:
        """Return a job that has a cluster."""
        return super().job(workload, number=number).with_options(scheduler=self.scheduler)


@pytest.mark.on_change("launching functions", "serverless_bench/features/workers")
class TestWorkers(ExecutorContract):
    executor = "workers"

    @pytest.fixture(autouse=True)
    def workers(self, tmp_path: Path) -> Iterator[None]:
        """Start one more than there are concurrent functions: one may be killed."""
        with serving() as store, credentials(KEYS):
            self.control = Target(bucket="any", prefix="control/", endpoint_url=store.endpoint_url)
            for _ in range(3):
                place = ("--control", "s3://any/control/", "--endpoint-url", store.endpoint_url)
                Apart(tmp_path, KEYS).start("worker", *place)
            yield
            end_started()
