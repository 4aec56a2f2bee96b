"""Contents of a picture's specification."""

from collections.abc import Iterator
from typing import Any


def panels(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the panels of a picture, row by row."""
    for row in spec["vconcat"]:
        yield from row.get("hconcat", [row])


def title_of(panel: dict[str, Any]) -> str:
    """Return the title of a panel, which may have several lines."""
    text = panel["title"]["text"]
    return text if isinstance(text, str) else " ".join(text)


def rows(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the data of a panel or of a layer."""
    values: list[dict[str, Any]] = part["data"]["values"]
    return values
