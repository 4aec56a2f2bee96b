"""Clients by their declarations: no test knows one of them by its name."""

from serverless_bench.clients import CLIENTS
from serverless_bench.clients.base import ClientInfo, Quirk


def info_of(client_name: str) -> ClientInfo:
    return CLIENTS.load(client_name).info


def clients_without(*quirks: Quirk) -> list[str]:
    """Return the clients that have none of these quirks, in the order of the table."""
    return [name for name in CLIENTS if info_of(name).quirks.isdisjoint(quirks)]
