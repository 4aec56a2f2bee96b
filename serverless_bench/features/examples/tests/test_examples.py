"""`sbench examples` lists the files of examples/ and writes them, but overwrites no file."""

import compileall
import importlib
from pathlib import Path

import pytest

from serverless_bench.features.examples import command as examples
from serverless_bench.features.examples.command import _EXAMPLES
from tests.commands.command import Call
from tests.house.measures import REPOSITORY
from tests.house.members import uses

EXAMPLES = REPOSITORY / "examples"


def files(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*.*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_package_has_all_of_them() -> None:
    assert files(_EXAMPLES) == files(EXAMPLES)


def test_they_are_listed_with_descriptions(call: Call) -> None:
    code, out, _ = call("examples")
    assert code == 0
    for name in {path.parts[0] for path in files(EXAMPLES)} - {"README.md"}:
        assert name in out
    assert "stages.toml              a job file: sbench run examples/stages.toml\n" in out


def test_all_are_written_into_a_folder(call: Call, tmp_path: Path) -> None:
    assert call("examples", "--all", "--folder", "mine")[0] == 0
    wanted = files(EXAMPLES)
    del wanted[Path("README.md")]
    assert files(tmp_path / "mine") == wanted


def test_one_or_a_folder_of_them_is_written(call: Call, tmp_path: Path) -> None:
    # pip compiles installed files in this way.
    compileall.compile_dir(_EXAMPLES, quiet=1)
    importlib.reload(examples)
    assert call("examples", "first_run.py", "executor")[1] == (
        "wrote examples/executor/pyproject.toml\n"
        "wrote examples/executor/sbench_processes.py\n"
        "wrote examples/first_run.py\n"
    )


def test_a_file_that_exists_is_replaced_only_if_told(call: Call, tmp_path: Path) -> None:
    mine = tmp_path / "examples" / "wire.toml"
    mine.parent.mkdir()
    mine.write_text("mine")
    code, out, err = call("examples", "--all")
    assert (code, out) == (2, "")
    assert err.startswith("sbench: examples/wire.toml exists already\nhint: --overwrite")
    assert [*files(mine.parent)] == [Path("wire.toml")]
    assert mine.read_text() == "mine"
    assert call("examples", "wire.toml", "--overwrite")[0] == 0
    assert mine.read_text() == (EXAMPLES / "wire.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nothing.toml",), "'nothing.toml' is not one of 'boto3.toml', "),
        (("wire.toml", "--folder", "file/in"), "cannot read or write file/in/wire.toml: Not a dir"),
    ],
)
def test_unwritable_files_are_one_line(
    call: Call, tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    (tmp_path / "file").touch()
    code, out, err = call("examples", *arguments)
    assert (code, out) == (2, "")
    assert text in err.splitlines()[0]


@pytest.mark.parametrize("link", ["mine/first_run.py", "mine/executor", "mine"])
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_no_file_is_written_through_a_link(
    call: Call, tmp_path: Path, link: str, more: tuple[str, ...], *, exists: bool
) -> None:
    victim = tmp_path / "victim"
    if exists and link.endswith(".py"):
        victim.write_text("precious")
    elif exists:
        victim.mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(victim)
    code, out, err = call("examples", "first_run.py", "executor", "--folder", "mine", *more)
    assert (code, out, f"{link} is a link" in err) == (2, "", True), err
    assert victim.exists() == exists
    assert not victim.is_dir() or not any(victim.iterdir())
    assert not victim.is_file() or victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        pytest.param(("run", "examples/stages.toml"), "stages", marks=uses("feature stages")),
        pytest.param(("ab", "examples/a.toml", "b"), "wire", marks=uses("feature ab")),
    ],
)
def test_a_job_file_that_is_missing_is_answered_with_the_command_that_writes_one(
    call: Call, tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    code, _, err = call(*words)
    assert code == 2
    command = f"examples {name}.toml"
    assert f"hint: sbench {command} writes an example" in err
    assert call(*command.split())[0] == 0
    assert (tmp_path / "examples" / f"{name}.toml").is_file()
