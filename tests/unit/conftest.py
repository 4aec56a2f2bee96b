import socket

import pytest


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit tests that open a connection are integration tests."""

    def refuse(*_: object) -> None:
        raise AssertionError("a unit test opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
