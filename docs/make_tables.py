"""Write the tables of pages again, each between two comments, from code and data.

make tables                    all pages
python -m docs.make_tables PAGE...

A table stands between ``<!-- table NAME: PATH -->`` and ``<!-- end -->``. The comments stay. A
test compares committed tables with their sources.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from docs.make_index import FOUND
from docs.tables import HERE, LINK, markdown, read_rows

ROOT: Final = HERE.parent
PAGES: Final = (ROOT / "README.md", *sorted(HERE.rglob("*.md")), *FOUND)
"""Pages of the documentation."""
MADE: Final[Mapping[str, tuple[str, ...]]] = {
    "commands": ("docs.make_commands", "made"),
    "faults": ("docs.make_faults", "table"),
    "features": ("docs.make_index", "table"),
    "flags-aws-stack": ("docs.make_flags", "flags", "aws", "stack"),
    "flags-lambda-host": ("docs.make_flags", "flags", "lambda-host"),
    "flags-serve": ("docs.make_flags", "flags", "serve"),
    "licences": ("requirements.licences", "table"),
    "parameters": ("docs.make_flags", "parameters"),
    "performance": ("docs.make_performance", "made"),
    "reference": ("docs.make_reference", "made"),
    "settings": ("docs.make_settings", "table"),
    "stores": ("docs.make_stores", "table"),
    "studies": ("docs.make_experiments", "choice"),
}
"""Module, function and arguments by the name of a table.

Other tables are options of a client, rows of a file, or objects of a JSON report.
"""
TABLE: Final = re.compile(
    r"^(<!-- table (?P<name>[\w-]+): (?P<path>\S+) -->\n)(?P<text>.*?)(^<!-- end -->)$",
    re.MULTILINE | re.DOTALL,
)


def main(arguments: Sequence[str]) -> None:
    """Write the tables of the named pages, or of all, again."""
    for page in [Path(name).resolve() for name in arguments] or PAGES:
        text = page.read_text(encoding="utf-8")
        made = with_tables(text, page.parent)
        if made != text:
            page.write_text(made, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)}\n")


def with_tables(text: str, folder: Path) -> str:
    """Return the text of a page with its tables made again.

    Raises
    ------
    KeyError
        If it has an unknown table.
    """

    def made(found: re.Match[str]) -> str:
        begin, name, path, _, end = found.groups()
        if not (folder / path).exists():
            return ""  # of a removed feature
        return f"{begin}\n{_table(name, folder / path, folder).strip()}\n\n{end}"

    return TABLE.sub(made, text)


def _table(name: str, path: Path, folder: Path) -> str:
    if name in MADE:
        module, function, *arguments = MADE[name]
        return _made(module, function, *arguments)
    if name.startswith("options-"):
        return _made("docs.make_flags", "client_options", name.removeprefix("options-"))
    if path.suffix == ".csv":
        return markdown(read_rows(path))
    return _moved(_made("docs.make_report", "table", name), folder)


def _made(module: str, name: str, *arguments: str) -> str:
    # Imported now, because some modules need many libraries.
    make: Callable[..., str] = getattr(import_module(module), name)
    return make(*arguments)


def _moved(text: str, folder: Path) -> str:
    """Return a text whose links start in docs/ with links that start in a folder."""

    def moved(link: re.Match[str]) -> str:
        return link[0].replace(link[1], os.path.relpath(HERE / link[1], folder), 1)

    return LINK.sub(moved, text)


if __name__ == "__main__":
    main(sys.argv[1:])
