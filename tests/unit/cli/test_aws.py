"""``sbench aws template`` as a user calls it."""

import pytest

from tests.command import Call
from tests.template import ROOT, Template


def test_without_flags_it_writes_the_template_that_is_checked_in(call: Call) -> None:
    code, out, err = call("aws", "template")
    assert (code, err) == (0, "")
    assert out == (ROOT / "template.yaml").read_text()


def test_flags_say_which_functions_there_are(call: Call) -> None:
    flags = ("--memory", "3538,1769", "--arch", "x86_64", "--copies", "2")
    code, out, err = call("aws", "template", *flags, "--runtime", "python3.12")
    assert (code, err) == (0, "")
    made = Template(out)
    assert [one["FunctionName"] for one in made.functions.values()] == [
        f"bench-worker-{memory}-x86_64{copy}" for memory in (3538, 1769) for copy in ("", "-2")
    ]
    assert {one["Runtime"] for one in made.functions.values()} == {"python3.12"}
    # The file says how it was made.
    assert out.startswith("# sbench aws template --memory 3538,1769 --arch x86_64 --copies 2 ")


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
    code, out, err = call("aws", "template", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) <= 2
