"""``sbench write`` with settings for tests only: another workload, less patience.

python -m tests.matrix.driver WORKLOAD PATIENCE_S [FLAGS OF SBENCH WRITE]
"""

import sys
from collections.abc import Mapping
from typing import Any

from serverless_bench.cli import job
from serverless_bench.cli.main import main
from serverless_bench.features.remote import thread_pool


def run(workload: str, timeout_s: str, *flags: str) -> int:
    prepared = job.prepare

    def prepare(_: str, given: Mapping[str, Any]) -> job.Prepared:
        return prepared(workload, given)

    changed: Mapping[Any, Mapping[str, object]] = {
        job: {"prepare": prepare},
        thread_pool: {"_TIMEOUT_S": float(timeout_s)},
    }
    for module, names in changed.items():
        vars(module).update(names)
    return main(["write", *flags])


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
