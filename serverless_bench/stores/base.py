"""What the keeper asks of a store that it runs."""

from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """An S3 server as a child process."""

    bucket: str
    endpoint_url: str

    def command(self) -> list[str]:
        """Return the command that starts the server in the foreground."""

    def environment(self, access_key: str, secret_key: str) -> dict[str, str]:
        """Return the variables that give the server its only credentials."""

    def reclaim(self) -> None:
        """Give the space of deleted objects back to the disk now, where that needs saying."""


class StoreFactory(Protocol):
    """What stands in the table of stores."""

    def __call__(self, directory: Path) -> Store:
        """Return a store that keeps its data below ``directory``; nothing starts yet."""
