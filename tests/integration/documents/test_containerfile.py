"""The build steps of the Containerfile work, as far as this can be tested without an engine."""

import json
import os
import re
import shutil
import subprocess
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.features.loopback.server import serving
from tests.commands.command import Sbench
from tests.documents.quoted import ROOT
from tests.house.members import uses
from tests.stores.servers import KEYS

IGNORED: Final = (ROOT / ".dockerignore").read_text().splitlines()
IMAGES: Final = ("worker", "command")


@dataclass
class Stage:
    """The instructions between two lines FROM, in their order."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def arguments(self, *names: str) -> list[str]:
        return [value for name, value in self.instructions if name in names]


def stages() -> dict[str, Stage]:
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    found: dict[str, Stage] = {}
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines.pop(0) == "ARG BASE=python:3.13-slim"
    for line in lines:
        name, _, value = line.partition(" ")
        if name == "FROM":
            base, name_of_stage = re.fullmatch(r"(\S+) AS (\w+)", value).groups()  # type: ignore[union-attr]
            found[name_of_stage] = Stage(base)
        else:
            found[name_of_stage].instructions.append((name, value))
    return found


def test_it_has_the_images_that_it_names() -> None:
    assert list(stages()) == ["packages", *IMAGES]
    assert {stage.base for stage in stages().values()} == {"${BASE}"}


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_runs_without_rights_and_only_has_its_packages(name: str) -> None:
    stage = stages()[name]
    assert stage.arguments("USER") == ["1000:1000"]
    assert stage.arguments("COPY") == [f"--from=packages /opt/{name} /opt/{name}"]
    # After that no other user is set, and no variable could be a secret.
    names = [instruction for instruction, _ in stage.instructions]
    assert not {"RUN", "COPY"} & set(names[names.index("USER") :])
    assert stage.arguments("ENV", "ARG") == [f"PATH=/opt/{name}/bin:$PATH"]
    assert json.loads(stage.arguments("ENTRYPOINT")[0])[0] == "sbench"


def test_every_package_of_others_is_pinned_by_its_hash() -> None:
    for run in stages()["packages"].arguments("RUN"):
        if " install " in run:
            assert ("--require-hashes -r requirements/" in run) != ("--no-deps dist/*.whl" in run)


def test_copied_files_exist_and_are_the_whole_context() -> None:
    copied = {
        source for copy in stages()["packages"].arguments("COPY") for source in copy.split()[:-1]
    }
    assert [source for source in sorted(copied) if not (ROOT / source).exists()] == []
    sent = {line.removeprefix("!") for line in IGNORED if line.startswith("!")}
    folders = {re.sub(r"/.*", "", source) for source in copied}
    assert {re.sub(r"/.*", "", pattern) for pattern in sent} == folders
    assert "*" in IGNORED


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory in which the stage with the packages ran: its /opt."""
    root = tmp_path_factory.mktemp("container")
    venv.create(root / "base", with_pip=True)
    work, path = root / "build", f"{root / 'base' / 'bin'}:{os.environ['PATH']}"
    work.mkdir()
    # A test needs few of the modules that are installed: they are compiled when it loads them.
    environment = {**os.environ, "PATH": path, "PIP_COMPILE": "0", "UV_COMPILE_BYTECODE": "0"}
    environment.pop("VIRTUAL_ENV", None)
    for name, value in stages()["packages"].instructions:
        if name == "COPY":
            *sources, to = value.split()
            for source in sources:
                copy(ROOT / source, work / to)
        elif name == "RUN":
            run(value.replace("/opt/", f"{root}/opt/"), work, environment)
        else:
            assert (name, value) in {("WORKDIR", "/build"), ("ENV", "UV_COMPILE_BYTECODE=1")}
    return root / "opt"


def copy(source: Path, to: Path) -> None:
    """Act like COPY: files go into a folder, and for a folder its contents."""
    if source.is_dir():
        shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        to.mkdir(exist_ok=True)
        shutil.copy(source, to)


def run(command: str, directory: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=directory,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.on_change(".dockerignore", "Containerfile")
def test_the_command_starts_with_the_packages_of_its_image(built: Path, sbench: Sbench) -> None:
    done = subprocess.run(
        [built / "command/bin/sbench", "demo", "--number", "1", "--mb", "1"],
        cwd=sbench.directory,
        env={**sbench.environment, "PATH": str(built / "command/bin"), "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.count("plot: ")) == (0, 1), done.stderr


@uses("executor workers")
@pytest.mark.on_change(".dockerignore", "Containerfile")
def test_the_worker_runs_a_job_with_the_packages_of_its_image(built: Path, tmp_path: Path) -> None:
    program, *words = json.loads(stages()["worker"].arguments("ENTRYPOINT")[0])
    with serving() as store:
        at = ("--endpoint-url", store.endpoint_url)
        worker = subprocess.Popen(
            [built / "worker/bin" / program, *words, "--control", "s3://any/control/", *at],
            env={**KEYS, "PATH": str(built / "worker/bin")},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            where = ("--bucket", "any", "--control-prefix", "control/", *at)
            job = ("write", "--executor", "workers", "--number", 2, "--mb", 1, "--format", "json")
            done = Sbench(tmp_path, KEYS)(*job, *where)
        finally:
            worker.terminate()
            output = worker.communicate()[0]
    assert (done.code, done.json["ok"]) == (0, 2), done.err
    assert output.splitlines()[-1] == "2 functions run, 0 of them failed"
