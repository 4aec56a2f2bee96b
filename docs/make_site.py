"""Build the documentation as HTML: pages and the files that they link to, with all tables.

make site                             into site/html
python -m docs.make_site --into F     into another folder

Tables are made again, and pages of studies get their full tables. Folders stay the same, so links
do, too.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from docs.make_index import FEATURES, INDEX
from docs.make_tables import PAGES, ROOT, with_tables
from docs.tables import HERE, LINK

RESULTS: Final = FEATURES / "studies" / "results"
_FENCED: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_HYPHENATED: Final = re.compile(r"(?<!`)`(?=[^`\s]*-)[^`\s]{3,40}`(?!`)")
"""A text in backquotes with a hyphen and without a space."""
_FEATURE: Final = re.compile(r"\[([^\]]*)\]\(([^)#:\s]*\bfeatures/\w+/[^)#\s]*)[^)]*\)")
_ROW: Final = re.compile(r"^\| \[(.+?)\]\((\S+?)\) \|", re.MULTILINE)
CONFIGURATION: Final = """\
[project]
site_name = "sbench"
site_description = "Throughput of serverless functions against object storage"
docs_dir = "source"
site_dir = "html"
use_directory_urls = false
extra_css = ["docs/site.css"]
nav = [
    {{ "sbench" = "README.md" }},
{nav}]

[project.theme]
# Fonts of the system: pages ask no other host for anything.
font = false
features = [
    "content.code.copy",
    "navigation.footer",
    "navigation.top",
    "search.highlight",
    "toc.follow",
]

[[project.theme.palette]]
media = "(prefers-color-scheme)"
toggle.icon = "lucide/sun-moon"
toggle.name = "Switch to light mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to system preference"
"""
STYLE: Final = HERE / "site.css"


def main() -> int:
    """Build the site, and return the exit code of its builder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--into", type=Path, default=ROOT / "site")
    return build(parser.parse_args().into)


def build(into: Path) -> int:
    """Write the sources of the site and build it; a dead link is an error."""
    shutil.rmtree(into, ignore_errors=True)
    for path in linked():
        copy = into / "source" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            copy.write_text(in_one_piece(complete(path)), encoding="utf-8")
        else:
            shutil.copyfile(path, copy)
    shutil.copyfile(STYLE, into / "source" / STYLE.relative_to(ROOT))
    nav = navigation(complete(INDEX))
    (into / "zensical.toml").write_text(CONFIGURATION.format(nav=nav), encoding="utf-8")
    return render(into)


def render(into: Path) -> int:
    """Build the site from its sources, and return the exit code of its builder."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=into, check=False).returncode


def linked() -> Iterator[Path]:
    """Yield the first pages, and every file of the repository that pages link to."""
    waiting, seen = list(PAGES), set(PAGES)
    while waiting:
        path = waiting.pop()
        yield path
        if path.suffix == ".md":
            found = {(path.parent / target).resolve() for target in LINK.findall(complete(path))}
            new = {one for one in found - seen if one.is_file() and one.is_relative_to(ROOT)}
            seen |= new
            waiting += sorted(new)


@cache
def complete(page: Path) -> str:
    """Return the text of a page with its tables, and without links to removed features.

    Raises
    ------
    KeyError
        If it has an unknown table.
    """
    text = with_tables(page.read_text(encoding="utf-8"), page.parent)
    if page.parent == RESULTS:
        from docs.make_experiments import details  # of a feature, which can be removed

        text = f"{text}\n{details(page.stem)}"
    return without_removed(text, page.parent)


def in_one_piece(text: str) -> str:
    """Return a text whose identifiers have a class that forbids line breaks at their hyphens."""
    blocks = _FENCED.split(text)
    blocks[::2] = [_HYPHENATED.sub(r"\g<0>{.identifier}", prose) for prose in blocks[::2]]
    return "".join(blocks)


def without_removed(text: str, folder: Path) -> str:
    """Return a text without rows about removed features, and links to them as plain text."""

    def is_removed(link: re.Match[str] | None) -> bool:
        return link is not None and not (folder / link[2]).exists()

    lines = text.splitlines(keepends=True)
    kept = (line for line in lines if not is_removed(_FEATURE.match(line, 2)) or line[0] != "|")
    return _FEATURE.sub(lambda link: link[1] if is_removed(link) else link[0], "".join(kept))


def navigation(index: str) -> str:
    """Return the sections of the index and their pages, as the builder's setting."""
    seen = set[str]()
    return "".join(f"    {section},\n" for section in _sections(index, "##", seen))


def _sections(text: str, mark: str, seen: set[str]) -> Iterator[str]:
    """Yield each section of a text with its pages, and the sections within it."""
    for title, body in re.findall(rf"^{mark} (.+)\n((?:(?!{mark} ).*\n)+)", text, re.MULTILINE):
        inner = list(_sections(body, f"{mark}#", seen)) or list(_entries(body, seen))
        yield f'{{ "{title}" = [{", ".join(inner)}] }}'


def _entries(rows: str, seen: set[str]) -> Iterator[str]:
    for label, target in _ROW.findall(rows):
        path = (HERE / target).resolve().relative_to(ROOT).as_posix()
        if path not in seen:
            seen.add(path)
            yield f'{{ "{label}" = "{path}" }}'


if __name__ == "__main__":
    sys.exit(main())
