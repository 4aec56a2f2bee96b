from serverless_bench.testing.executors import ExecutorContract


class TestInline(ExecutorContract):
    executor = "inline"
    survives_death = False


class TestLocal(ExecutorContract):
    executor = "local"


class TestLithops(ExecutorContract):
    executor = "lithops"
