"""Documents are correct: examples, notebooks, commands, links, tables."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

from docs.make_index import FEATURES
from docs.make_notebooks import executed
from docs.make_site import complete, without_removed
from docs.tables import LINK
from serverless_bench.base import errors
from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.rundir.run import SCHEMA
from tests.commands.command import Sbench
from tests.commands.processes import PATIENCE_S
from tests.documents.quoted import PAGES
from tests.house.members import uses
from tests.house.removed import is_removed, skip_if_removed, whole
from tests.stores.servers import Server

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def run_python(sbench: Sbench, *words: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a script where the command would run, in a process of its own."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=sbench.directory,
        env={**os.environ, **sbench.environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.on_change("examples", "python")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path: Path, sbench: Sbench, moto: Server) -> None:
    skip_if_removed(path.read_text())
    if path.stem == "your_own_store":
        at_moto = Sbench(sbench.directory, moto.environment)
        done = run_python(at_moto, path, moto.endpoint_url, moto.bucket)
    else:
        done = run_python(sbench, path)
    # On a busy machine progress is shown every 10 s.
    errors = [line for line in done.stderr.splitlines() if not re.match(r"\d+ s: ", line)]
    assert (done.returncode, errors) == (0, [])
    assert done.stdout.count("\n") >= 2


def test_an_example_reports_its_missing_requirements() -> None:
    path = ROOT / "examples" / "your_own_store.py"
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("usage: ")


def test_the_first_run_is_ten_lines() -> None:
    code = (ROOT / "examples" / "first_run.py").read_text().split('"""')[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


@uses("feature custom")
def test_the_function_of_its_page_runs_from_python_and_from_the_command(sbench: Sbench) -> None:
    page = (FEATURES / "custom" / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (sbench.directory / "mine.py").write_text(code)
    done = run_python(sbench, "mine.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "8\n", "")
    called = sbench("custom", "mine.py:mine", "--number", 2, "--mb", 1, "--format", "json")
    assert (called.code, called.json["ok"]) == (0, 2)


def test_the_page_names_the_packages_of_notebooks() -> None:
    read: Any = nbformat.read
    sources = "\n".join(cell.source for path in NOTEBOOKS for cell in read(path, 4).cells)
    imported = set(re.findall(r"^(?:import|from) (\w+)", sources, re.MULTILINE))
    others = imported - {"serverless_bench", *sys.stdlib_module_names}
    assert others == {"pandas"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [words.partition(">")[0] for words in project["optional-dependencies"]["frames"]] == [
        *others
    ]
    page = (ROOT / "docs" / "python.md").read_text()
    assert "`pip install 'serverless-bench[frames]'`, and a notebook `jupyterlab`" in page


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_a_figure_after_ten_lines(path: Path) -> None:
    lines = 0
    for cell in nbformat.read(path, as_version=4).cells:  # type: ignore[no-untyped-call]
        if cell.cell_type == "code":
            lines += len([line for line in cell.source.splitlines() if line])
            if "image/png" in str(cell.outputs):
                break
    assert lines <= 10


@pytest.mark.on_change("notebooks", "python")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, sbench: Sbench) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    skip_if_removed("\n".join(cells))
    kept = kinds_of_output(notebook)
    assert "image/png" in str(kept), "make notebooks"
    environment = {**os.environ, **sbench.environment}
    assert kinds_of_output(executed(notebook, round(PATIENCE_S), environment)) == kept


def kinds_of_output(notebook: Any) -> list[list[str]]:
    """Return the kinds of output of each cell: figures differ from run to run, kinds do not."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [sorted(output.get("data", output)) for cell in cells for output in cell.outputs]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    # As it is, too: the site leaves out links to features that are not there.
    for target in LINK.findall(page.read_text("utf-8") + complete(page)):
        there = re.match(r"https?:", target) or (page.parent / target).exists()
        assert there or is_removed([target]), target


@uses("feature live")
def test_the_site_leaves_out_rows_and_links_of_removed_features() -> None:
    gone, there = (f"../serverless_bench/features/{name}/README.md" for name in ("gone", "live"))
    text = f"| [A]({gone}) | a |\n| [B]({there}) | b |\n[A]({gone}#a), [B]({there}), [C](c.md)\n"
    left = f"| [B]({there}) | b |\nA, [B]({there}), [C](c.md)\n"
    assert without_removed(text, ROOT / "docs") == left


@whole
def test_exit_codes_are_documented() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    codes = {code.value for code in ExitCode} | {errors.INTERRUPTED, errors.OUTPUT_UNREAD}
    codes |= {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    documented = {int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert documented == codes


def test_the_readme_has_both_commands_and_ci_runs_the_second() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.on_change("docs", "python")
def test_python_in_the_documents_runs(sbench: Sbench) -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    skip_if_removed(code)
    (sbench.directory / "from_the_page.py").write_text(code)
    done = run_python(sbench, "from_the_page.py")
    assert done.returncode == 0, done.stderr


def test_the_saved_run_of_the_notebook_is_a_run(sbench: Sbench) -> None:
    for name in ("write", "read"):
        saved = ROOT / "notebooks" / "saved-run" / name
        report = sbench("report", saved, "--format", "json")
        assert report.code == 0
        header = json.loads((saved / "run.json").read_text())
        assert header["schema"] == SCHEMA


def test_documents_teach_public_names() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *FEATURES.glob("*/README.md")]
    texts = {page: page.read_text() for page in [*pages, *EXAMPLES]}
    # Authors of plugins use their interfaces, which that page describes.
    del texts[ROOT / "docs" / "plugins.md"]
    private = re.compile(r"^ *(?:from|import) serverless_bench\.\w", re.MULTILINE)
    assert [str(page) for page, text in texts.items() if private.search(text)] == []
