"""The fork server of the local executor, and the work of a worker.

It is started once per job, imports the code of a function, and forks a worker for every socket that
it receives (see ``base.fork_server``).
"""

import json
import mmap
import socket
import sys
from typing import Any

from serverless_bench.base.fork_server import ForkServer, answer_lines
from serverless_bench.worker.board import board_type
from serverless_bench.worker.rehearsal import rehearse


def main(control_fd: int, board_fd: int, rehearsal: str) -> None:
    """Serve the driver until it closes its end of the control socket.

    Parameters
    ----------
    control_fd, board_fd
        Socket to the driver, and the file of the board.
    rehearsal
        JSON of an invocation that is run, and fails, before the first fork.
    """

    def run(order: dict[str, Any], worker_fd: int | None) -> None:
        _work(socket.socket(fileno=worker_fd), order["fork"], board_fd)

    server = ForkServer(control_fd, run)
    # Workers inherit what is loaded here.
    board_type()
    rehearse(rehearsal)
    server.serve()


def _work(driver: socket.socket, slot: int, board_fd: int) -> None:
    """Run invocations until the driver closes the socket."""
    from serverless_bench.job.spec import InvocationSpec
    from serverless_bench.worker.invocation import run_invocation

    board = board_type()(mmap.mmap(board_fd, 0)).writer(slot)

    def record(invocation: Any) -> str:
        return json.dumps(
            run_invocation(InvocationSpec.from_json(invocation), board=board).to_json()
        )

    answer_lines(driver, record)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
