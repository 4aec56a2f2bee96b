"""Promises of docs/versions.md and CHANGELOG.md."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import serverless_bench
from serverless_bench.cli.main import command_names
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from serverless_bench.metrics import summary
from serverless_bench.payload import keystream, shaped
from serverless_bench.rundir import run
from serverless_bench.rundir.digests import FILES, GrowingDigest
from serverless_bench.rundir.listing import RECORDS
from tests.commands.command import Call
from tests.documents.quoted import ROOT
from tests.house.removed import is_removed, whole

VERSIONS = (ROOT / "docs" / "versions.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
SAVED = ROOT / "notebooks" / "saved-run" / "write"


def row(name: str) -> list[str]:
    found = re.search(rf"^\| {re.escape(name)}[^|]* \| (.+) \|$", VERSIONS, re.MULTILINE)
    assert found, name
    return [cell.strip() for cell in found[1].split(" | ")]


@pytest.mark.parametrize(
    ("family", "names"),
    [("commands", command_names()), ("clients", CLIENTS), ("executors", EXECUTORS)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_named_parts_exist(family: str, names: list[str]) -> None:
    output = [name for cell in row(family) for name in re.findall(r"`([\w-]+)`", cell)]
    assert output
    assert [name for name in output if name not in names and not is_removed([name])] == []


def test_versions_of_files_are_todays() -> None:
    from serverless_bench.features.loopback import request_log

    assert row("[run directory](run-directory.md)")[1] == str(run.SCHEMA)
    assert row("[JSON report](figures.md)")[1] == str(summary.REPORT_SCHEMA)
    assert row("[request log](../serverless_bench/features/audit/README.md)")[1] == str(
        request_log.FORMAT
    )
    bytes_of_objects = f"`{keystream.VERSION}`, `{shaped.VERSION}`"
    assert row("objects' [bytes](keystream.md)")[1] == bytes_of_objects


def changed(tmp_path: Path, file: str, change: str) -> Path:
    """Copy the saved run; each JSON object that begins with ``change`` gets one more field."""
    copy = tmp_path / "run"
    shutil.copytree(SAVED, copy)
    path = copy / file
    text = path.read_text().replace(change, f'{change}"of_tomorrow": 1, ')
    assert text != path.read_text()
    lines = text.splitlines(keepends=True)
    if file == RECORDS:
        # The later version of sbench also wrote the digest of its lines.
        digest, end = GrowingDigest(), json.loads(lines[-1])
        digest.update("".join(lines[:-1]).encode())
        end["end"][FILES][RECORDS] = digest.to_json()
        lines[-1] = json.dumps(end) + "\n"
    path.write_text("".join(lines))
    return copy


def report(call: Call, path: Path) -> tuple[int, str]:
    code, out, err = call("report", str(path), "--format", "json")
    return code, out if code == 0 else err


def test_a_field_of_tomorrow_in_a_record_is_skipped(tmp_path: Path, call: Call) -> None:
    later = changed(tmp_path, RECORDS, '"record":{')
    assert report(call, later) == report(call, SAVED)


def test_a_setting_of_tomorrow_in_a_job_is_refused(tmp_path: Path, call: Call) -> None:
    code, output = report(call, changed(tmp_path, "run.json", '"job": {'))
    assert (code, "of_tomorrow" in output) == (8, True)


def test_a_schema_of_tomorrow_is_refused(tmp_path: Path, call: Call) -> None:
    copy = tmp_path / "run"
    shutil.copytree(SAVED, copy)
    header = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**header, "schema": run.SCHEMA + 1}))
    code, output = report(call, copy)
    assert (code, "newer sbench" in output) == (8, True)


def test_the_changelog_has_unreleased_changes_or_this_version() -> None:
    sections = re.findall(
        r"^## \[?([^\]\n]+?)\]?(?: - (\d{4}-\d\d-\d\d))?$", CHANGELOG, re.MULTILINE
    )
    assert sections[0] == ("Unreleased", "")
    dated = [version for version, date in sections[1:] if date]
    assert len(dated) == len(sections) - 1
    assert not dated or dated[0] == serverless_bench.__version__


def test_the_changelog_has_the_usual_kinds_of_changes() -> None:
    kinds = set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@whole
def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)", index))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= linked


def test_the_page_on_installing_says_which_extra_a_command_needs() -> None:
    from serverless_bench.features.array.libraries import ARRAYS

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # Named like a value of --client, --library or --executor, or for all of them.
    by_family = {*CLIENTS, *ARRAYS, *EXECUTORS, "clients", "arrays"}
    extras = {*project["optional-dependencies"]} - {name.replace("_", "-") for name in by_family}
    page = (ROOT / "docs" / "install.md").read_text()
    assert len(extras) > 8
    assert [extra for extra in sorted(extras) if f"`{extra}`" not in page] == []
