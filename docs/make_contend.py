"""Make the table of conditional writes, conditional.csv, from new runs against every store.

python docs/make_contend.py

versitygw and s3s-fs are built first, if necessary (``tests/stores/built.py``).
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # tests define the servers

from docs.tables import write_rows  # noqa: E402
from serverless_bench.features.loopback.server import serving  # noqa: E402
from serverless_bench.features.loopback.state import LoopbackSettings  # noqa: E402
from tests.stores import servers  # noqa: E402
from tests.stores.servers import KEYS, Server  # noqa: E402

FILE: Final = ROOT / "serverless_bench" / "features" / "conditional" / "conditional.csv"
PATTERNS: Final = {
    "increment": ("--operations", "400"),
    "claim": ("--objects", "200"),
    "append": ("--operations", "400"),
}
CONTENDERS: Final = ((1, 1), (2, 4))
"""Functions, and threads of each; operations are shared among all."""
HEADER: Final = (
    *("pattern", "commits/s of 1", "commits/s of 8", "commit p50 of 8", "p99 of 8"),
    *("refusals", "fairness", "keys violated"),
)


def main() -> None:
    """Measure, and write the table."""
    rows = list(measured())
    load = os.getloadavg()[1]
    machine = f"{os.cpu_count()} CPUs, {platform.machine()}, Linux, load {load:.1f}"
    write_rows(FILE, [(f"store ({machine})", *HEADER), *rows])


def measured() -> Iterator[tuple[str, ...]]:
    """Yield a row of each store and pattern."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        for name, server in stores(Path(scratch), stack):
            for pattern, flags in PATTERNS.items():
                runs = []
                for functions, threads in CONTENDERS:
                    each = list(flags)
                    if pattern != "claim":
                        each[1] = str(int(each[1]) // (functions * threads))
                    runs.append(report(server, Path(scratch), pattern, each, functions, threads))
                yield row(name, *runs)


def stores(scratch: Path, stack: ExitStack) -> Iterator[tuple[str, Server]]:
    """Yield every store by its name."""
    for name, racy in (("loopback", False), ("loopback --racy-conditions", True)):
        server = stack.enter_context(serving(LoopbackSettings(racy_conditions=racy)))
        yield name, Server(server.endpoint_url, "test", KEYS)
    for name, started in (
        ("SeaweedFS (embedded)", servers.embedded),
        ("moto", servers.moto),
        ("rclone serve s3", servers.rclone),
        ("versitygw", servers.versitygw),
        ("s3s-fs", servers.s3s_fs),
    ):
        yield name, stack.enter_context(started(Path(tempfile.mkdtemp(dir=scratch))))


def report(
    server: Server,
    scratch: Path,
    pattern: str,
    flags: Sequence[str],
    functions: int,
    threads: int,
) -> dict[str, Any]:
    """Return a run's report on its contention, after deleting its objects."""

    def sbench(*arguments: str) -> bytes:
        command = [sys.executable, "-m", "serverless_bench", *arguments]
        env = {**os.environ, **server.environment}
        done = subprocess.run(command, cwd=scratch, env=env, stdout=subprocess.PIPE, check=False)
        return done.stdout

    text = sbench(
        *("conditional", "--pattern", pattern, *flags, "--format", "json", "--name", "run"),
        *("--number", str(functions), "--threads", str(threads)),
        *("--concurrency", str(functions), "--barrier", "1"),
        *("--endpoint-url", server.endpoint_url, "--bucket", server.bucket),
    )
    sbench("clean", "sbench-runs/run")
    shutil.rmtree(scratch / "sbench-runs")
    found: dict[str, Any] = json.loads(text.splitlines()[-1])["contention"]
    return found


def row(name: str, alone: dict[str, Any], together: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a run of one contender and a run of all."""
    commit_s, violated = together["commit_s"], alone["violated_keys"] + together["violated_keys"]
    return (
        name,
        together["pattern"],
        f"{alone['commits_per_s']:.0f}",
        f"{together['commits_per_s']:.0f}",
        f"{commit_s['p50'] * 1000:.1f} ms",
        f"{commit_s['p99'] * 1000:.0f} ms",
        str(together["refused"] + together["conflicts"]),
        f"{together['fairness']:.2f}",
        str(violated),
    )


if __name__ == "__main__":
    main()
