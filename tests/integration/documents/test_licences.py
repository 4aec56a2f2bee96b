import re
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import pytest

from docs.tables import read_rows
from requirements.licences import FILE, is_allowed, licences, problems, table
from requirements.pins import locks, pins, policy
from tests.house.members import uses
from tests.house.removed import whole

RULES = policy()
ALLOWED = frozenset({"Apache-2.0", "MIT"})
LOCKS = sorted(locks().items())


def package(directory: Path, name: str, version: str, lines: Iterable[str]) -> None:
    about = directory / f"{name}-{version}.dist-info"
    about.mkdir()
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines, ""])
    (about / "METADATA").write_text(text)


def test_every_installed_package_is_allowed() -> None:
    found = licences([sysconfig.get_path("purelib")], RULES)
    assert len(found) > 150
    assert list(problems(found, RULES)) == []


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: GPL-3.0-only"], "GPL-3.0-only"),
        (["License: GPL-3.0-only"], "GPL-3.0-only"),
        (["Classifier: License :: OSI Approved :: MIT License"], "MIT"),
        (
            ["License: Apache 2.0", "Classifier: License :: OSI Approved :: BSD License"],
            "Apache-2.0",
        ),
        (["License: see the file"], ""),
        ([f"Classifier: License :: OSI Approved :: {one} License" for one in ("MIT", "BSD")], ""),
        ([], ""),
    ],
)
def test_a_licence_comes_from_clear_metadata(
    tmp_path: Path, lines: list[str], licence: str
) -> None:
    version = next(version for name, version in pins(locks()["dev"]) if name == "six")
    package(tmp_path, "six", version, lines)
    package(tmp_path, "not-pinned", "1", ["License-Expression: GPL-3.0-only"])
    found = licences([str(tmp_path)], RULES)
    assert [reported for name, reported in found if name == "six"] == [licence]
    assert ("not-pinned", "GPL-3.0-only") not in found
    refused = [line for line in problems(found, RULES) if line.startswith("six: ")]
    assert len(refused) == (licence not in {"MIT", "Apache-2.0"})


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MPL-2.0", False),
        ("MIT AND MPL-2.0", False),
        ("MIT OR MPL-2.0", True),
        ("MIT AND Apache-2.0 OR MPL-2.0", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", False),
        ("MIT AND (MPL-2.0 OR (MIT AND Apache-2.0))", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("", False),
    ],
)
def test_an_or_needs_one_allowed_licence_and_an_and_all(expression: str, *, allowed: bool) -> None:
    assert is_allowed(expression, ALLOWED) is allowed


def test_an_exception_holds_for_the_licence_that_it_names() -> None:
    assert list(problems([("certifi", "MPL-2.0")], RULES)) == []
    assert list(problems([("certifi", "GPL-3.0-only")], RULES)) == [
        "certifi: accepted as MPL-2.0, and is GPL-3.0-only"
    ]


@whole
def test_exceptions_and_statements_are_about_pinned_packages() -> None:
    pinned = {name for _, lock in LOCKS for name, _ in pins(lock)}
    assert RULES.accepted.keys() | RULES.stated.keys() | RULES.go_modules.keys() <= pinned


@uses("feature aws")
def test_licences_in_a_functions_zip_only_require_a_notice() -> None:
    carried = {name for name, _ in pins(locks()["function"])}
    assert carried.isdisjoint(RULES.accepted)


@pytest.mark.parametrize(("name", "lock"), LOCKS)
def test_the_file_and_the_table_have_everything_that_is_pinned(name: str, lock: Path) -> None:
    pinned = {one for one, _ in pins(lock)}
    assert pinned <= {one for one, _ in read_rows(FILE)}, "make licences"
    assert pinned <= set(re.findall(r"[a-z0-9][a-z0-9-]+", table()))


@pytest.mark.parametrize(("name", "lock"), LOCKS)
def test_every_pin_has_hashes_and_no_file_names_a_host(name: str, lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    lines = text.replace("\\\n", " ").splitlines()
    wanted = [line for line in lines if line and not line.lstrip().startswith("#")]
    assert len(wanted) == len(pins(lock))
    for line in wanted:
        requirement, *hashes = line.split(" --hash=")
        assert re.fullmatch(r"[A-Za-z0-9._-]+==\S+( ;.*)?", requirement.strip()), line
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one.strip()) for one in hashes), requirement
