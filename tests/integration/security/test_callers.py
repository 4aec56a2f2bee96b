"""The kernel's answer about the other end of a connection, and private directories."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from serverless_bench.base import callers
from serverless_bench.base.callers import same_user
from serverless_bench.base.errors import StoreError
from serverless_bench.base.user_files import own_directory
from serverless_bench.features.loopback.server import serving
from serverless_bench.stores.direct import answers_as_own
from tests.commands.other_user import NOBODY, Stranger
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import free_port


@pytest.fixture(params=["127.0.0.1", "127.1.2.3", "::1"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as made:
        yield made


def test_a_connection_of_ones_own_is_known(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()[:2]) as mine:
        taken, _ = listener.accept()
        with taken:
            peer, own = taken.getpeername(), taken.getsockname()
            assert same_user(peer, own)
            # It holds for both ends.
            assert same_user(own, peer)
            assert callers._listed_owner(peer, own) == os.getuid()
            mine.close()
            # The kernel is made to answer that it is root's; the tests may run as root.
            assert not same_user(peer, own)
            assert callers._listed_owner(peer, own) is None


def test_another_users_connection_is_not_ours(listener: socket.socket, nobody: Stranger) -> None:
    host, port = listener.getsockname()[:2]
    nobody.hold(host, port)
    taken, _ = listener.accept()
    with taken:
        peer, own = taken.getpeername(), taken.getsockname()
        assert not same_user(peer, own)
        with callers.diagnosis() as kernel:
            assert callers._owner(peer, own, kernel) == NOBODY
        assert callers._listed_owner(peer, own) == NOBODY


def test_a_server_of_another_user_is_not_taken_for_ours(nobody: Stranger) -> None:
    with serving() as store:
        assert answers_as_own(store.endpoint_url, PATIENCE_S)
    assert not answers_as_own(f"http://127.0.0.1:{free_port()}", PATIENCE_S)
    assert not answers_as_own(nobody.serve(), PATIENCE_S)


def test_an_unconnected_port_has_no_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own = listener.getsockname()
        assert not same_user(("127.0.0.1", 1), own)
        # Not even with a listening server.
        assert not same_user(own, ("127.0.0.1", 1))


def test_without_socket_diagnostics_the_kernels_table_is_read(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*ends: object) -> None:
        raise PermissionError

    monkeypatch.setattr(callers, "_owner", refuse)
    with socket.create_connection(listener.getsockname()[:2]):
        taken, _ = listener.accept()
        with taken:
            assert same_user(taken.getpeername(), taken.getsockname())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
def test_a_directory_of_another_user_is_refused(open_place: Path) -> None:
    theirs, link = open_place / "theirs", open_place / "link"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    link.symlink_to(open_place / "mine")
    (open_place / "mine").mkdir()
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    for path in (theirs, link):
        with pytest.raises(StoreError, match="belongs to another user"):
            own_directory(path)
