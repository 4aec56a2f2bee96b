"""Paths, modules and functions in documents exist; and CONTRIBUTING.md lists every room."""

import re
from pathlib import Path

import pytest

from docs.make_index import FEATURES
from tests.documents.named import FOLDERS, dotted, exists, names_something, paths, rooms
from tests.documents.quoted import PAGES, ROOT
from tests.house.measures import sources
from tests.house.members import uses
from tests.house.removed import WORDS, is_removed, whole

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
NAMED = re.compile(
    r"(?<![\w/])(?:(?:docs|serverless_bench/features)/[a-z\d/_-]+\.(?:md|toml)|README\.md)\b"
)
"""Pages as sources name them: from the root, and in a feature its README."""
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
BY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@BY_PAGE
def test_every_path_is_there(page: Path) -> None:
    missing = [name for name in paths(page) if not exists(name, page)]
    assert [name for name in missing if not is_removed([name])] == []


@BY_PAGE
def test_every_dotted_name_is_something(page: Path) -> None:
    missing = [name for name in dotted(page) if not names_something(name)]
    assert [name for name in missing if not is_removed([name])] == []


def is_there(name: str, path: Path) -> bool:
    """Tell whether a page exists: from the root, or in the folder of a module's feature."""
    is_of_a_feature = name == "README.md" and FEATURES in path.parents
    folder = FEATURES / path.relative_to(FEATURES).parts[0] if is_of_a_feature else ROOT
    return any(folder.rglob(name)) if is_of_a_feature else (folder / name).exists()


def test_sources_name_pages_that_are_there() -> None:
    named = {(path, name) for path in SOURCES for name in NAMED.findall(path.read_text())}
    assert len(named) > 50 or is_removed(WORDS)
    missing = [(str(path), name) for path, name in named if not is_there(name, path)]
    assert [each for each in missing if not is_removed([each[1]])] == []


@whole
def test_the_record_lists_every_kind_of_request() -> None:
    made = {
        kind
        for room in ("worker", "workloads", "features")
        for path in sources(ROOT / "serverless_bench" / room)
        for kind in re.findall(r"\brun\(\s*\"(\w+)\"", path.read_text())
    }
    source = (ROOT / "serverless_bench" / "rundir" / "record.py").read_text()
    listed = re.search(r'    request: str\n    """(.*?)"""', source, re.DOTALL)
    assert listed
    filling = {"arrays", "for", "multipart", "or", "uploads"}
    assert made == set(re.findall(r"\w+", listed[1])) - filling


@whole
def test_there_are_many() -> None:
    assert sum(len(list(paths(page))) for page in PAGES) > 100
    assert sum(len(list(dotted(page))) for page in PAGES) > 5


@uses("feature testing")
def test_missing_names_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`worker/retry.py` `worker/nothing.py` `nothing.py` `clients/NAME.py` `payload/NAME.cc`\n"
        "`s3_benchmark.py` `claims/INDEX` `serverless_bench/worker/` serverless_bench.worker.no\n"
        "serverless_bench.features.testing.clients.ClientContract serverless_bench.FAMILY\n"
        "serverless_bench.no\n"
    )
    assert [name for name in paths(page) if not exists(name, page)] == [
        "worker/nothing.py",
        "nothing.py",
        "payload/NAME.cc",
    ]
    assert [name for name in dotted(page) if not names_something(name)] == [
        "serverless_bench.worker.no",
        "serverless_bench.no",
    ]


def test_the_map_has_a_line_for_every_room() -> None:
    the_map = CONTRIBUTING.read_text().partition("## The map")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| `(\w+)/` \|", the_map, re.MULTILINE)
    assert sorted(lines) == sorted(rooms())


def test_every_file_of_the_root_is_on_the_map() -> None:
    named = set(paths(CONTRIBUTING))
    assert {path.name for path in (ROOT / "serverless_bench").glob("*.py")} <= named


def test_at_least_six_questions_are_answered_by_paths() -> None:
    rows = re.findall(r"^\| ([^|`]+\?) \| (.+) \|$", CONTRIBUTING.read_text(), re.MULTILINE)
    assert len(rows) >= 6
    for question, answer in rows:
        assert re.search(r"`[\w/.-]+\.(py|toml)`", answer), question
