"""Commands share one keeper: commands that start at the same time, and the last to end."""

import subprocess
import sys
from pathlib import Path

import psutil

from serverless_bench.stores import embedded
from serverless_bench.stores.embedded import Lease
from tests.commands.processes import PATIENCE_S

OTHER = """\
import pathlib, sys
from serverless_bench.stores.embedded import Lease
lease = Lease.take(pathlib.Path(sys.argv[1]))
print("here", flush=True)
sys.stdin.readline()
lease.release()
"""


def test_the_second_commands_keeper_ends_immediately(tmp_path: Path) -> None:
    first = Lease.take(tmp_path)
    assert first is not None
    keeper = embedded._start_keeper(tmp_path)
    line = embedded._connect(tmp_path)
    assert line is not None
    second = Lease(line, keeper)
    assert keeper.returncode is not None
    assert second.address == first.address
    second.release()
    first.release()


def test_the_last_command_does_not_wait_for_the_first(tmp_path: Path) -> None:
    """The keeper is a child of the command that ended first, which may never wait for it."""
    first = Lease.take(tmp_path)
    assert first is not None
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "here\n"
        first.release()
        try:
            other.communicate("\n", timeout=PATIENCE_S)
        finally:
            other.kill()
    assert other.returncode == 0
    assert first._keeper is not None
    assert first._keeper.wait() == 0


def test_the_last_command_waits_for_the_end_of_the_store(tmp_path: Path) -> None:
    first, second = Lease.take(tmp_path), Lease.take(tmp_path)
    assert first is not None
    assert second is not None
    first.release()
    assert psutil.pid_exists(second.address.store_pid)
    second.release()
    assert not psutil.pid_exists(second.address.store_pid)
    assert first._keeper is not None
    assert first._keeper.wait() == 0
