"""An executor of another package: each function in a process of this machine.

A service that runs functions elsewhere replaces ``subprocess``: it has to pass an event to
``deliver``, and may lose it, repeat it or give no answer. Everything else is inherited.

    pip install examples/executor
    sbench write --executor processes --control-prefix control/ --number 8 --size 1MiB
"""

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict

from serverless_bench.executors.base import RunProgress
from serverless_bench.features.remote.executor import RemoteExecutor
from serverless_bench.features.remote.launcher import Launcher
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.rundir.record import Outcome

FUNCTION = """
import json, sys
from serverless_bench.features.remote.delivery import deliver
deliver(json.load(sys.stdin))
"""


class ProcessesExecutor(RemoteExecutor):
    """Starts a process for each function; it leaves its record below the control prefix."""

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        """Yield one outcome per invocation."""
        return self.run_with(Starter(self.job.concurrency), invocations, progress)


class Starter(Launcher):
    """Passes on events, one at a time."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.processes: list[subprocess.Popen[str]] = []

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        """Start a function, and return how often that was refused before."""
        (event,) = events()
        process = subprocess.Popen(
            [sys.executable, "-c", FUNCTION], stdin=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        if process.stdin is not None:
            with process.stdin:
                json.dump(asdict(event), process.stdin)
        return 0

    def close(self) -> None:
        """End the remaining processes, which the driver has given up."""
        for process in self.processes:
            process.kill()
            process.wait()
