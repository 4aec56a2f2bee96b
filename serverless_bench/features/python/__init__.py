"""Jobs in one call, and their results, for scripts and notebooks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serverless_bench.features.python.jobs import JobFunction
    from serverless_bench.features.python.result import Durations as Durations
    from serverless_bench.features.python.result import Result as Result
    from serverless_bench.features.python.saved import import_results as import_results
    from serverless_bench.features.python.saved import load_run as load_run

    array: JobFunction
    conditional: JobFunction
    custom: JobFunction
    list: JobFunction
    mixed: JobFunction
    noop: JobFunction
    parquet: JobFunction
    read: JobFunction
    replay: JobFunction
    shuffle: JobFunction
    write: JobFunction
