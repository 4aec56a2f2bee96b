"""Make the list of the features in docs/README.md from the pages in their folders.

The heading of a page is its title and, after a colon, the subject.
"""

from itertools import chain
from pathlib import Path
from typing import Final

from docs.tables import HERE, markdown
from serverless_bench.features import COMMANDS, PLUGINS

INDEX: Final = HERE / "README.md"
FEATURES: Final = HERE.parent / "serverless_bench" / "features"
_COPIED: Final = FEATURES / "examples" / "files"
"""Links to the examples, or copies of them."""
FOUND: Final = sorted(page for page in FEATURES.rglob("*.md") if not page.is_relative_to(_COPIED))
"""Pages of the features."""
_PLUGGED: Final = {"executors": "Executors", "clouds": "Clouds", "clients": "Clients"}
"""Families of plugins that have a group in the list."""


def table() -> str:
    """Return the features whose folders exist as Markdown, a table for each group."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for page in pages():
        heading = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        title, _, about = heading.partition(": ")
        path = page.relative_to(HERE.parent).as_posix()
        groups.setdefault(_group(_feature(page)), []).append((f"[{title}](../{path})", about))
    return "\n".join(
        f"### {title}\n\n{markdown([('page', 'about'), *rows])}" for title, rows in groups.items()
    )


def pages() -> list[Path]:
    """Return the pages of the features: in the order of their commands, then the others."""
    order = [place.partition(".")[0] for _, _, place, _ in COMMANDS.values()]
    plugged = [place.partition(".")[0] for family in _PLUGGED for place in PLUGINS[family].values()]
    found = [page for page in FOUND if page.name == "README.md"]
    last = [_feature(page) for page in found]
    return sorted(found, key=lambda page: [*order, *plugged, *last].index(_feature(page)))


def _feature(page: Path) -> str:
    return page.relative_to(FEATURES).parts[0]


def _group(feature: str) -> str:
    """Return the group of the feature's first command, or the family of its plugin."""
    groups = (one.group for one in COMMANDS.values() if one.place.startswith(f"{feature}."))
    families = (
        title
        for family, title in _PLUGGED.items()
        if any(place.startswith(f"{feature}.") for place in PLUGINS[family].values())
    )
    return next(chain(groups, families), "More")
