"""The target of a saved run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from serverless_bench.job.spec import Target

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run


@contextmanager
def open_target_of(run: "Run") -> Iterator[Target]:
    """Yield the target that a saved run wrote to."""
    from serverless_bench.driver.target import embedded_target

    if run.job.target.store is None:
        yield run.job.target
        return
    with embedded_target() as here:
        yield replace(here, prefix=run.job.target.prefix)
