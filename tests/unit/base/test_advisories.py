import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from requirements import advisories
from requirements.advisories import Affected, Event, Range, is_affected
from requirements.pins import policy
from tests.tables import each_row

URLLIB3: dict[str, Any] = {
    "id": "PYSEC-2023-212",
    "modified": "2023-10-25T18:28:34.811764Z",
    "aliases": ["CVE-2023-45803", "GHSA-g4mx-q9vg-27p4"],
    "summary": "the body is sent to where a redirect leads",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "urllib3", "purl": "pkg:pypi/urllib3"},
            "ranges": [
                {"type": "GIT", "events": [{"introduced": "0"}, {"fixed": "4e98d578"}]},
                {
                    "type": "ECOSYSTEM",
                    "events": [
                        {"introduced": "2.0.0"},
                        {"fixed": "2.0.7"},
                        {"introduced": "0"},
                        {"fixed": "1.26.18"},
                    ],
                },
            ],
        }
    ],
}
"""A real advisory, in the order of its ranges."""
RCLONE: dict[str, Any] = {
    "id": "GO-0000-0000",
    "modified": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"ecosystem": "Go", "name": "github.com/rclone/rclone"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.70.0"}]}],
        }
    ],
}
OTHERS: list[dict[str, Any]] = [
    {
        "id": name,
        "modified": "2020-01-01T00:00:00Z",
        "affected": [{"package": {"ecosystem": name, "name": "x"}}],
    }
    for name in ("PyPI", "Go")
]
"""Advisories for neither package, one of each ecosystem."""
LINE = (
    "urllib3 2.0.6 (run): PYSEC-2023-212, CVE-2023-45803, GHSA-g4mx-q9vg-27p4:"
    " the body is sent to where a redirect leads; fixed in 2.0.7, 1.26.18\n"
)


@pytest.fixture
def pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pinned packages: a vulnerable version of urllib3, and an older rclone."""
    lock = tmp_path / "run.txt"
    lock.write_text("urllib3==2.0.6 \\\n    --hash=sha256:0\nrclone-bin==1.69.1\nsix==1.17.0\n")
    monkeypatch.setattr(advisories, "locks", lambda: {"run": lock})
    monkeypatch.setattr(advisories, "KEPT", tmp_path / "kept")
    return lock


def archive(path: Path, *records: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        for number, one in enumerate([*OTHERS, *records]):
            out.writestr(f"{number}.json", json.dumps(one))
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["advisories", *map(str, arguments)])
    return advisories.main()


def test_a_planted_pin_with_a_known_vulnerability_is_found(
    pin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = archive(tmp_path / "PyPI.zip", URLLIB3)
    assert run(monkeypatch, data) == 1
    assert capsys.readouterr().out == (
        f"{LINE}1 known, by advisories up to 2023-10-25T18:28:34.811764Z\n"
    )
    pin.write_text(pin.read_text().replace("2.0.6", "2.0.7"))
    assert run(monkeypatch, data) == 0


def test_a_program_in_a_wheel_is_looked_for_by_its_name_in_go(
    pin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, archive(tmp_path / "Go.zip", RCLONE)) == 1
    assert capsys.readouterr().out.startswith("github.com/rclone/rclone 1.69.1 (run): GO-0000-0000")


def test_irrelevant_and_withdrawn_advisories_are_not_reported(
    pin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawn = URLLIB3 | {"withdrawn": "2024-01-01T00:00:00Z"}
    other = URLLIB3 | {"affected": [{"ranges": [], "versions": ["2.0.6"]}]}
    assert run(monkeypatch, archive(tmp_path / "PyPI.zip", withdrawn, other)) == 0
    rules = policy()
    rules.advisories["CVE-2023-45803"] = "sbench follows no redirect with a body"
    monkeypatch.setattr(advisories, "policy", lambda: rules)
    assert run(monkeypatch, archive(tmp_path / "PyPI.zip", URLLIB3)) == 0


def test_a_failed_search_is_reported_with_its_exit_code(
    pin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(advisories, "SOURCE", f"file://{tmp_path}/away/{{}}.zip")
    assert run(monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no advisories for PyPI" in err
    assert "could not look for advisories for PyPI and Go" in err
    # The archive of an earlier download is searched, and reported as old.
    archive(tmp_path / "kept" / "PyPI.zip", URLLIB3)
    assert run(monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out.startswith(LINE)
    assert "could not look for today's advisories" in err


def test_ecosystems_without_an_archive_are_not_searched(
    pin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, records, missing in (
        ("empty", [], "PyPI and Go"),
        ("PyPI", OTHERS[:1], "Go"),
        ("Go", OTHERS[1:], "PyPI"),
    ):
        path = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(path, "w") as out:
            for one in records:
                out.writestr("one.json", json.dumps(one))
        assert run(monkeypatch, path) == 2
        assert f"could not look for advisories for {missing}: " in capsys.readouterr().err


def test_fetched_archives_are_kept(
    pin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisories, "SOURCE", f"file://{tmp_path}/{{}}.zip")
    for name, one in (("PyPI", URLLIB3), ("Go", RCLONE)):
        archive(tmp_path / f"{name}.zip", one)
    assert run(monkeypatch) == 1
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["Go.zip", "PyPI.zip"]


@pytest.mark.parametrize("data", [b"no archive", None, b"{}"])
def test_an_invalid_archive_is_one_line(
    pin: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: bytes | None,
) -> None:
    path = tmp_path / "PyPI.zip"
    if data == b"{}":
        archive(path, {})
    elif data is not None:
        path.write_bytes(data)
    assert run(monkeypatch, path) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"{path} is no archive of OSV's advisories: ")
    assert err.count("\n") == 1


@each_row(
    ("version", "events", "affected"),
    [
        ("1.26.17", [Event(introduced="2"), Event(introduced="0"), Event(fixed="1.26.18")], True),
        ("1.26.18", [Event(introduced="2"), Event(introduced="0"), Event(fixed="1.26.18")], False),
        ("1.9", [Event(introduced="0"), Event(fixed="1.10")], True),
        ("1.10", [Event(introduced="0"), Event(last_affected="1.10")], True),
        ("1.10.post1", [Event(introduced="0"), Event(last_affected="1.10")], False),
        ("2.0rc1", [Event(introduced="2.0")], False),
        ("0.0.0-20240101-abcdef", [Event(introduced="0"), Event(fixed="0.1.0")], True),
        ("4.48", [Event(introduced="0"), Event(fixed="0.0.0-20240101-abcdef")], False),
        # In doubt an advisory is reported.
        ("2004d", [Event(introduced="0"), Event(fixed="2005")], True),
        ("1.0", [Event(introduced="0"), Event(fixed="unreadable")], True),
    ],
)
def test_ranges_are_read_as_osv_says(version: str, events: list[Event], *, affected: bool) -> None:
    one = Affected(ranges=(Range(type="ECOSYSTEM", events=tuple(events)),))
    assert is_affected(version, one) is affected
    assert not is_affected(version, Affected(ranges=(Range(type="GIT", events=tuple(events)),)))
    assert is_affected(version, Affected(versions=(version,)))
