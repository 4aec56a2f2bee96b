"""``sbench aws stack`` as a user calls it."""

import tomllib
from pathlib import Path

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.features.aws.stack.source import PACKAGE
from serverless_bench.features.aws.stack.template import ARCHITECTURES, RUNTIMES, template
from tests.clouds.template import Template
from tests.commands.command import Call
from tests.house.members import uses

ROOT = Path(__file__).parents[4]
RECIPE = Path("serverless_bench", "features", "aws", "stack", "recipe")


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
        *("samconfig.toml", "serverless_bench", "template.yaml")
    ]


def test_a_clone_is_the_stack_that_it_writes_without_flags(call: Call) -> None:
    folder = stack(call)
    for path in ("samconfig.toml", "template.yaml"):
        assert (ROOT / path).read_bytes() == (folder / path).read_bytes(), "make stack"
    # All that `sam build` reads has the same place in both.
    for written in folder.rglob("*"):
        if written.is_file():
            assert (ROOT / written.relative_to(folder)).read_bytes() == written.read_bytes()


def test_the_settings_name_the_stack_and_no_account() -> None:
    settings = tomllib.loads((ROOT / "samconfig.toml").read_text())["default"]
    assert settings["global"]["parameters"] == {"stack_name": "sbench"}
    assert set(settings["deploy"]["parameters"]) == {
        *("capabilities", "confirm_changeset", "fail_on_empty_changeset", "resolve_s3", "tags")
    }


def test_there_is_a_folder_for_every_platform_of_functions(call: Call) -> None:
    folder = stack(call)
    machines = {"arm64": "aarch64", "x86_64": "x86_64"}
    # glibc 2.26 of Amazon Linux 2; Amazon Linux 2023, which the others have, has 2.34.
    oldest = {"python3.11": "manylinux2014"}
    assert {
        path.parent.name: path.read_text() for path in (folder / RECIPE).glob("*/platform")
    } == {
        f"{runtime}-{arch}": f"--python-version {runtime.removeprefix('python')} "
        f"--python-platform {machines[arch]}-{oldest.get(runtime, 'manylinux_2_28')}\n"
        for runtime in RUNTIMES
        for arch in ARCHITECTURES
    }


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
    # The file contains the command that made it.
    assert text.startswith("# sbench aws stack --memory 3538,1769 --arch x86_64,arm64 --copies 2 ")
    for name in made.functions:
        assert (folder / made.resources[name]["Metadata"]["WorkingDirectory"] / "platform").exists()


def test_a_second_time_replaces_what_the_first_wrote_and_keeps_settings(call: Call) -> None:
    folder = stack(call)
    settings, old = folder / "samconfig.toml", folder / "serverless_bench" / "old.py"
    settings.write_text("# mine")
    old.touch()
    stack(call, "--runtime", "python3.12")
    assert settings.read_text() == "# mine"
    assert not old.exists()
    assert "/python3.12-arm64\n" in (folder / "template.yaml").read_text()


def test_in_its_own_clone_it_writes_the_template_and_leaves_the_code(call: Call) -> None:
    clone = Path("sbench-stack")
    clone.mkdir()
    (clone / "README.md").touch()
    (clone / PACKAGE.name).symlink_to(PACKAGE)
    before = sorted(PACKAGE.rglob("*.py"))
    stack(call, "--arch", "x86_64")
    assert (clone / "template.yaml").read_text() == template(arch=["x86_64"])
    assert sorted(PACKAGE.rglob("*.py")) == before
    assert (clone / PACKAGE.name).is_symlink()


def test_the_clone_of_another_sbench_is_left_alone(call: Call) -> None:
    command = stack(call) / "serverless_bench" / "cli" / "main.py"
    command.parent.mkdir()
    command.touch()
    code, out, err = call("aws", "stack")
    assert (code, out) == (2, "")
    assert "sbench-stack has other files than those of a stack" in err
    assert command.exists()


def test_it_contains_no_path_of_this_machine(call: Call) -> None:
    folder = stack(call).resolve()
    for path in folder.rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or str(Path(__file__).parents[4]) not in path.read_text()


@pytest.mark.parametrize("name", ["mine.txt", "template.yaml"])
def test_a_foreign_folder_is_not_changed(call: Call, name: str) -> None:
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


@uses("client obstore")
def test_a_client_may_lack_wheels_for_one_architecture_only(call: Call) -> None:
    flags = ("--client", "wire,obstore", "--runtime", "python3.11", "--arch")
    code, out, err = call("aws", "stack", *flags, "x86_64,arm64")
    assert (code, out) == (2, "")
    assert "--client obstore has no wheels for python3.11 on arm64" in err
    stack(call, *flags, "x86_64")


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--memory must be 128 to 10240 MB, got 64", ("--memory", "1769,64")),
        ("--memory '1769,big' are not whole numbers", ("--memory", "1769,big")),
        ("--memory names one of them twice", ("--memory", "1769,1769")),
        ("--arch must be arm64 or x86_64, got arm", ("--arch", "arm")),
        ("0 is not in the range", ("--copies", "0")),
        ("these are 32 functions, a stack has 30 at most", ("--copies", "32")),
        ("these are 32 functions", ("--copies", "16", "--client", "wire,boto3")),
        ("--client must be one of awscrt, boto3,", ("--client", "wire,s3fs")),
        ("--client names one of them twice", ("--client", "boto3,boto3")),
        *(
            (
                f"--client {client} has no wheels for {runtime} on x86_64",
                ("--client", client, "--runtime", runtime, "--arch", "x86_64"),
            )
            for client, runtime in (("minio", "python3.11"), ("s3dlio", "python3.14"))
            if client in CLIENTS
        ),
        ("'python3.9' is not one of", ("--runtime", "python3.9")),
    ],
)
def test_impossible_stacks_are_one_line(call: Call, words: str, arguments: tuple[str, ...]) -> None:
    code, out, err = call("aws", "stack", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) <= 2
    assert not any(Path().iterdir())
