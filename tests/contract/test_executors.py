import pytest

from serverless_bench.rundir.record import Lost
from serverless_bench.testing.executors import ExecutorContract


class TestInline(ExecutorContract):
    executor = "inline"
    survives_death = False


class TestLocal(ExecutorContract):
    executor = "local"

    @pytest.mark.timeout(60)
    def test_workers_may_die_again_and_again(self) -> None:
        """A worker's end and the word of it come in any order."""
        outcomes = self.outcomes("fault-kill", invocations=200)
        lost = [o.result.index for o in outcomes if isinstance(o.result, Lost)]
        assert lost == list(range(1, 200, 4))


class TestLithops(ExecutorContract):
    executor = "lithops"
