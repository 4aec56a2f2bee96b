"""Two commands that start at the same time both start a keeper, and one is enough."""

import socket
from pathlib import Path

from serverless_bench.stores import embedded
from serverless_bench.stores.embedded import Lease


def test_the_keeper_of_a_command_that_came_second_goes_at_once(tmp_path: Path) -> None:
    first = Lease.take(tmp_path)
    assert first is not None
    address = embedded._socket_path(tmp_path)
    keeper = embedded._start_keeper(tmp_path, address)
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(address))
    second = Lease(line, keeper)
    assert keeper.returncode is not None
    assert second.address == first.address
    second.release()
    first.release()
