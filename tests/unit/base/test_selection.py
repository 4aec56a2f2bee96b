"""The choice of tests by changed files: right on a small repository, and everything in doubt."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import selection
from tests.selection import (
    Change,
    change,
    implied,
    marked,
    needed,
    reason,
    timing_tests,
    unit_tests,
)

FILES: Mapping[str, str] = {
    "serverless_bench/__init__.py": "",
    "serverless_bench/core.py": "import serverless_bench.deep\n",
    "serverless_bench/deep.py": "",
    "serverless_bench/other.py": "",
    "serverless_bench/features/part/__init__.py": "",
    "serverless_bench/features/part/rig.py": "from serverless_bench.features.part import wheel\n",
    "serverless_bench/features/part/wheel.py": (
        "def of():\n    from serverless_bench import other\n"
    ),
    "serverless_bench/features/part/table.csv": "",
    "serverless_bench/features/new/code.py": "",
    "serverless_bench/features/new/tests/data.py": "import serverless_bench.features.new.code\n",
    "serverless_bench/features/new/tests/test_new.py": (
        "from serverless_bench.features.new.tests.data import one\n"
    ),
    "serverless_bench/features/new/tests/integration/test_slow.py": (
        "import serverless_bench.features.new.code\n"
    ),
    "tests/__init__.py": "",
    "tests/helper.py": "from serverless_bench.features.part.rig import one\n",
    "tests/test_part.py": "import pytest\nfrom tests.helper import one\n"
    "import serverless_bench.core\n@pytest.mark.on_change('serverless_bench/features/part')\n"
    "def test(): ...\n",
    "tests/unit/test_core.py": "import serverless_bench.core\n",
    "tests/unit/test_other.py": "from serverless_bench import other\n",
    "tests/integration/test_rate.py": "@pytest.mark.timing\ndef test(): ...\n",
    "notebooks/page.md": "",
    "serverless_bench/features/part/README.md": "",
}
PATHS = ("serverless_bench/features/part",)
OF_THE_FEATURE = "serverless_bench/features/new/tests/test_new.py"
OF_THE_FEATURE_TOO = "serverless_bench/features/new/tests/integration/test_slow.py"
EVERY = [OF_THE_FEATURE, "tests/unit/test_core.py", "tests/unit/test_other.py"]


def git(root: Path, *arguments: str) -> str:
    who = ("-c", "user.name=one", "-c", "user.email=one@example.com")
    command = ["git", "-C", str(root), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A small repository without history."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def root(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository with one landed commit, and one after it."""
    monkeypatch.delenv("LANDED", raising=False)
    git(files, "init", "--quiet")
    git(files, "add", ".")
    git(files, "commit", "--quiet", "--message", "One")
    (files / ".ci").mkdir()
    (files / ".ci/landed").write_text(git(files, "rev-parse", "HEAD") + "\n")
    git(files, "add", ".")
    git(files, "commit", "--quiet", "--message", "Two")
    return files


def why(root: Path) -> str:
    change.cache_clear()
    return reason(root / "tests/test_part.py", PATHS, change(root), root)


@pytest.mark.parametrize(
    ("file", "output"),
    [
        (
            "serverless_bench/features/part/table.csv",
            "serverless_bench/features/part/table.csv changed",
        ),
        ("serverless_bench/features/part/new.py", "serverless_bench/features/part/new.py changed"),
        ("serverless_bench/core.py", "serverless_bench/core.py changed"),
        ("tests/helper.py", "tests/helper.py changed"),
        # An import of a module of the part itself, within a function.
        ("serverless_bench/other.py", "serverless_bench/other.py changed"),
        ("pyproject.toml", "pyproject.toml changed"),
        ("requirements/dev.txt", "requirements/dev.txt changed"),
        # Modules of the core are not followed, and pages need nothing.
        ("serverless_bench/deep.py", ""),
        ("notebooks/page.md", ""),
        ("tests/unit/test_core.py", ""),
        ("serverless_bench/features/part_of_the_name.py", ""),
    ],
)
def test_a_part_runs_if_it_or_what_it_imports_changed(files: Path, file: str, output: str) -> None:
    test = files / "tests/test_part.py"
    assert reason(test, PATHS, Change(frozenset([file]), "0"), files) == output


def test_a_new_file_counts_before_and_after_its_commit(root: Path) -> None:
    assert why(root) == ""
    (root / "serverless_bench/features/part/new.py").write_text("")
    assert why(root) == "serverless_bench/features/part/new.py changed"
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "Three")
    assert why(root) == "serverless_bench/features/part/new.py changed"


def test_a_page_of_the_package_counts_as_one_of_docs(root: Path) -> None:
    (root / "serverless_bench/features/part/README.md").write_text("Another text.")
    assert why(root) == ""
    change.cache_clear()
    changed = change(root)
    assert isinstance(changed, Change)
    assert "docs/serverless_bench/features/part/README.md" in changed.files
    assert unit_tests(changed, root) == []


def test_a_removed_or_renamed_file_is_a_change(root: Path) -> None:
    git(root, "mv", "serverless_bench/features/part/table.csv", "notebooks/table.csv")
    git(root, "commit", "--quiet", "--message", "Three")
    assert why(root) == "serverless_bench/features/part/table.csv changed"


def test_everything_runs_in_doubt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".ci/landed").unlink()
    assert why(root) == "no landed commit is named"
    monkeypatch.setenv("LANDED", "0" * 40)
    assert why(root) == "there is no history"
    monkeypatch.setenv("LANDED", git(root, "rev-parse", "HEAD"))
    assert why(root) == ""
    git(root, "checkout", "--quiet", "--orphan", "another")
    git(root, "commit", "--quiet", "--message", "Apart")
    assert why(root) == "there is no history"


def test_modules_of_the_core_are_not_followed(files: Path) -> None:
    assert needed(files / "tests/test_part.py", ("tests", *PATHS), files) == {
        *("tests/test_part.py", "tests/helper.py"),
        *(
            f"serverless_bench/{name}.py"
            for name in ("__init__", "core", "other", "features/part/__init__")
        ),
        *(f"serverless_bench/features/part/{name}.py" for name in ("rig", "wheel")),
    }


def test_marks_are_found_without_loading_the_tests(files: Path) -> None:
    assert list(marked(files)) == [
        (files / OF_THE_FEATURE_TOO, ("serverless_bench/features/new",)),
        (files / "tests/test_part.py", PATHS),
    ]


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("serverless_bench/features/new/code.py", True),
        ("serverless_bench/features/new/table.csv", True),
        ("serverless_bench/features/new/tests/test_new.py", True),
        ("serverless_bench/features/newer/code.py", False),
        ("serverless_bench/core.py", False),
    ],
)
def test_an_integration_test_of_a_feature_runs_if_that_changed(
    files: Path, file: str, *, runs: bool
) -> None:
    test = files / OF_THE_FEATURE_TOO
    change = Change(frozenset([file]), "0")
    assert bool(reason(test, implied(test, files), change, files)) == runs


def test_no_other_test_belongs_to_a_feature_without_a_mark(files: Path) -> None:
    assert implied(files / OF_THE_FEATURE, files) == ()
    assert implied(files / "tests/integration/test_rate.py", files) == ()


def test_files_that_judge_by_time_are_found_without_loading_the_tests(files: Path) -> None:
    assert timing_tests(files) == ["tests/integration/test_rate.py"]


@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        ("serverless_bench/core.py", ["tests/unit/test_core.py"]),
        ("serverless_bench/deep.py", ["tests/unit/test_core.py"]),
        ("serverless_bench/other.py", ["tests/unit/test_other.py"]),
        ("tests/unit/test_other.py", ["tests/unit/test_other.py"]),
        ("serverless_bench/features/new/code.py", [OF_THE_FEATURE]),
        ("serverless_bench/features/new/tests/data.py", [OF_THE_FEATURE]),
        ("serverless_bench/features/new/tests/integration/test_slow.py", []),
        ("notebooks/page.md", []),
        ("serverless_bench/features/part/table.csv", EVERY),
        ("conftest.py", EVERY),
    ],
)
def test_unit_tests_of_a_changed_module_are_chosen(
    files: Path, file: str, chosen: list[str]
) -> None:
    assert unit_tests(Change(frozenset([file]), "0"), files) == chosen


def test_all_unit_tests_are_chosen_in_doubt(files: Path) -> None:
    assert unit_tests("there is no history", files) == EVERY


def test_the_list_names_every_marked_file(capsys: pytest.CaptureFixture[str]) -> None:
    change.cache_clear()
    selection.main([])
    output = capsys.readouterr().out
    names = [path.relative_to(selection.ROOT).as_posix() for path, _ in marked()]
    assert output.startswith("all tests run: ") or all(f"{name}: " in output for name in names)
