"""A distribution can be built, and is complete; faults of a distribution are found."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.distribution import of_metadata, problems
from tests.documents.quoted import ROOT, Quoted, check

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return directory


def metadata(directory: Path) -> bytes:
    with zipfile.ZipFile(next(directory.glob("*.whl"))) as wheel:
        return wheel.read(next(name for name in wheel.namelist() if name.endswith("METADATA")))


def test_it_is_whole(built: Path) -> None:
    assert list(problems(built)) == []


def test_it_names_no_path_of_this_machine(built: Path) -> None:
    output = metadata(built).decode()
    assert str(ROOT) not in output
    assert str(Path.home()) not in output


def test_one_of_another_time_is_found(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    wheel = next(tmp_path.glob("*.whl"))
    shutil.copy(wheel, wheel.with_name(wheel.name.replace("-0.", "-99.")))
    assert "2 wheels" in next(problems(tmp_path))


def test_a_missing_file_is_found(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    path = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(path) as wheel:
        kept = {name: wheel.read(name) for name in wheel.namelist() if "py.typed" not in name}
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in kept.items():
            wheel.writestr(name, data)
    assert list(problems(tmp_path)) == ["the wheel lacks serverless_bench/py.typed"]


@pytest.mark.parametrize(
    ("line", "instead", "problem"),
    [
        ("Summary: .*\n", "", "the metadata have no summary"),
        ("text/markdown", "text/plain", "the description is text/plain"),
        ("Topic :: System :: ", "Topic :: ", "no such classifier: Topic :: Benchmark"),
    ],
)
def test_faults_that_an_index_would_refuse_are_found(
    built: Path, line: str, instead: str, problem: str
) -> None:
    spoiled = re.sub(line, instead, metadata(built).decode(), count=1)
    assert list(of_metadata(spoiled.encode())) == [problem]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_existing_commands(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    lines = [
        line
        for job in jobs.values()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]
    ours = [line.split() for line in lines if line.startswith(("make ", ".ci/"))]
    assert ours
    for words in ours:
        if words[0] == "make":
            check(Quoted(path, tuple(words), whole=True))
        else:
            assert (ROOT / words[0]).is_file()
