"""What the documents say is what happens: examples, notebooks, commands, links, tables."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import click
import nbformat
import pytest
from nbclient import NotebookClient

from serverless_bench import errors
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.main import commands
from serverless_bench.cli.options import spelled
from serverless_bench.cli.plan_job import COMMANDS as PLANNED
from tests.command import Sbench
from tests.servers import Server

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*/README.md")]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path: Path, sbench: Sbench, moto: Server) -> None:
    own = path.stem == "your_own_store"
    arguments = [moto.endpoint_url, moto.bucket] if own else []
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=sbench.directory,
        env={**os.environ, **(moto if own else sbench).environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") >= 2


def test_the_first_run_is_ten_lines() -> None:
    code = (ROOT / "examples" / "first_run.py").read_text().split('"""')[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, sbench: Sbench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in sbench.environment.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    folder = {"metadata": {"path": str(ROOT / "notebooks")}}
    ran = NotebookClient(notebook, timeout=120, resources=folder, kernel_name="python3").execute()
    shown = [output for cell in ran.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        assert re.match(r"https?:", target) or (page.parent / target).exists(), target


def commands_in(page: Path) -> list[str]:
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text(), re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.lstrip("$ ").startswith("sbench ")]


def test_every_flag_in_the_documents_exists() -> None:
    checked = 0
    for page in PAGES:
        lines = list(commands_in(page))
        for line in lines:
            own, _, inner = line.partition(" -- ")
            if inner.startswith("sbench "):
                lines.append(inner)
            name, *rest = shlex.split(own.partition("#")[0].partition("|")[0])[1:]
            if name.startswith("-"):
                continue
            if name == "plan" and (planned := next((w for w in rest if w in PLANNED), None)):
                # What stands behind a command is its own.
                at = rest.index(planned)
                lines.append(shlex.join(["sbench", *rest[at:]]))
                rest = rest[:at]
            command = commands.get_command(
                commands.make_context("sbench", ["--help"], resilient_parsing=True), name
            )
            while isinstance(command, click.Group):
                command = command.commands.get(rest.pop(0))
            assert command is not None, f"{page.name}: {line}"
            known = {opt for parameter in command.params for opt in parameter.opts} | {"--help"}
            for flag in (word.partition("=")[0] for word in rest if word.startswith("--")):
                today = "--" + spelled(flag.removeprefix("--"))
                assert today in known, f"{page.name}: {line}"
            checked += 1
    assert checked > 10


def test_exit_codes_are_documented() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    codes = {code.value for code in ExitCode} | {errors.INTERRUPTED}
    codes |= {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    documented = {int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert documented == codes


def test_the_readme_has_both_commands_and_ci_runs_the_second() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("name", ["own-function", "python"])
def test_python_in_the_documents_runs(
    name: str, sbench: Sbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sbench.directory)
    for variable, value in sbench.environment.items():
        monkeypatch.setenv(variable, value)
    page = (ROOT / "docs" / f"{name}.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    script = sbench.directory / "from_the_page.py"
    script.write_text(code)
    runpy.run_path(str(script), run_name="__main__")


def test_the_saved_run_of_the_notebook_is_a_run(sbench: Sbench) -> None:
    for name in ("write", "read"):
        saved = ROOT / "notebooks" / "saved-run" / name
        report = sbench("report", saved, "--format", "json")
        assert report.code == 0
        header = json.loads((saved / "run.json").read_text())
        assert header["schema"] == 1
