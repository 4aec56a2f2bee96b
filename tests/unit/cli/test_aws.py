"""``sbench aws stack`` as a user calls it."""

from pathlib import Path

import pytest

from serverless_bench.aws.stack.template import template
from tests.clouds.template import Template
from tests.commands.command import Call


def stack(call: Call, *arguments: str) -> Path:
    code, out, err = call("aws", "stack", *arguments)
    assert (code, err) == (0, "")
    folder = Path("sbench-stack")
    assert out == f"stack: {folder}; in it, sam build && sam deploy\n"
    return folder


def test_without_flags_it_writes_a_stack_with_one_function(call: Call) -> None:
    folder = stack(call)
    assert (folder / "template.yaml").read_text() == template()
    assert sorted(path.name for path in folder.iterdir()) == [
        *("function", "samconfig.toml", "template.yaml")
    ]


def test_flags_say_which_functions_there_are(call: Call) -> None:
    flags = ("--memory", "3538,1769", "--arch", "x86_64,arm64", "--copies", "2")
    folder = stack(call, *flags, "--runtime", "python3.12")
    text = (folder / "template.yaml").read_text()
    made = Template(text)
    assert [one["FunctionName"] for one in made.functions.values()] == [
        f"bench-worker-{memory}-{arch}{copy}"
        for memory in (3538, 1769)
        for arch in ("x86_64", "arm64")
        for copy in ("", "-2")
    ]
    assert {one["Runtime"] for one in made.functions.values()} == {"python3.12"}
    # The file says how it was made.
    assert text.startswith("# sbench aws stack --memory 3538,1769 --arch x86_64,arm64 --copies 2 ")
    for name in made.functions:
        assert (folder / made.resources[name]["Metadata"]["WorkingDirectory"] / "platform").exists()


def test_a_second_time_replaces_what_the_first_wrote_and_keeps_settings(call: Call) -> None:
    folder = stack(call)
    settings, code = folder / "samconfig.toml", folder / "function" / "code"
    settings.write_text("# mine")
    (code / "old.py").touch()
    stack(call, "--runtime", "python3.12")
    assert settings.read_text() == "# mine"
    assert not (code / "old.py").exists()
    assert [path.name for path in folder.glob("function/python*")] == ["python3.12-arm64"]


def test_it_points_to_nothing_of_this_machine(call: Call) -> None:
    folder = stack(call).resolve()
    for path in folder.rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or str(Path(__file__).parents[3]) not in path.read_text()


@pytest.mark.parametrize("name", ["mine.txt", "template.yaml"])
def test_a_folder_of_somebody_else_is_left_alone(call: Call, name: str) -> None:
    Path("sbench-stack", "function").mkdir(parents=True)
    Path("sbench-stack", name).write_text("mine")
    code, out, err = call("aws", "stack")
    assert (code, out) == (2, "")
    assert "sbench-stack has other files than those of a stack" in err
    assert sorted(Path().rglob("*")) == [
        *(Path("sbench-stack"), Path("sbench-stack/function"), Path("sbench-stack", name))
    ]


def test_a_folder_that_cannot_be_is_one_line(call: Call) -> None:
    Path("file").touch()
    code, out, err = call("aws", "stack", "file/stack")
    assert (code, out) == (2, "")
    assert "cannot write file/stack: Not a directory" in err


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--memory must be 128 to 10240 MB, got 64", ("--memory", "1769,64")),
        ("--memory is whole numbers with commas between", ("--memory", "1769,big")),
        ("--memory names one of them twice", ("--memory", "1769,1769")),
        ("--arch must be arm64 or x86_64, got arm", ("--arch", "arm")),
        ("0 is not in the range", ("--copies", "0")),
        ("these are 32 functions, a stack has 30 at most", ("--copies", "32")),
        ("'python3.9' is not one of", ("--runtime", "python3.9")),
    ],
)
def test_what_no_stack_can_have_is_one_line(
    call: Call, words: str, arguments: tuple[str, ...]
) -> None:
    code, out, err = call("aws", "stack", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) <= 2
    assert not any(Path().iterdir())
