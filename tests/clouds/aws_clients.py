"""Clients of AWS that tests make: closed when the test ends, not when memory is collected."""

from typing import Any

from botocore.session import Session

_opened: list[Any] = []


def open_client(service: str, **settings: Any) -> Any:
    """Return a botocore client; ``settings`` as of ``Session.create_client``."""
    client = Session().create_client(service, **settings)
    _opened.append(client)
    return client


def close_clients() -> None:
    """Close the connections of all clients; a client opens new ones when it is used again."""
    for client in _opened:
        client.close()
