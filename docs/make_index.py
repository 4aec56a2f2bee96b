"""Make the list of the features in docs/README.md from the pages in their folders.

The heading of a page is its title and, after a colon, the subject.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.tables import HERE, markdown
from serverless_bench.features import COMMANDS

INDEX: Final = HERE / "README.md"
FEATURES: Final = HERE.parent / "serverless_bench" / "features"
_COPIED: Final = FEATURES / "examples" / "files"
"""Links to the examples, or copies of them."""
FOUND: Final = sorted(page for page in FEATURES.rglob("*.md") if not page.is_relative_to(_COPIED))
"""Pages of the features."""


def table() -> str:
    """Return the features whose folders exist as Markdown."""
    return markdown([("page", "about"), *_rows()])


def pages() -> list[Path]:
    """Return the pages of the features: in the order of their commands, then the others."""
    order = [place.partition(".")[0] for _, _, place, _ in COMMANDS.values()]
    found = [page for page in FOUND if page.name == "README.md"]
    names = {page: page.relative_to(FEATURES).parts[0] for page in found}
    return sorted(found, key=lambda page: [*order, names[page]].index(names[page]))


def _rows() -> Iterator[tuple[str, str]]:
    for page in pages():
        heading = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        title, _, about = heading.partition(": ")
        path = page.relative_to(HERE.parent).as_posix()
        yield f"[{title}](../{path})", about
