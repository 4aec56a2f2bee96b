"""Messages of the command for each of the wrong values in ``wrong_values.toml``."""

import shlex
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.commands.command import Call
from tests.house.members import EVERY_WORKLOAD, RIGS, uses

WRONG: Final[list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_suffix("").with_name("wrong_values.toml").read_text()
)["wrong"]


def test_there_are_a_hundred_and_twenty_of_them_were_met_by_a_stranger() -> None:
    assert len(WRONG) >= 100
    assert sum("stranger" in case for case in WRONG) >= 20


@uses(*EVERY_WORKLOAD, "client boto3", "client wire", "executor lambda", *RIGS, "feature studies")
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case["says"])
def test_one_line_names_the_origin_of_a_wrong_value(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]
) -> None:
    words = shlex.split(case["command"])
    variable, _, value = case.get("variable", "").partition("=")
    if variable:
        monkeypatch.setenv(variable, value)
    if "file" in case:
        (tmp_path / case["file"]).write_text(case["text"])
        if case["file"] == "sbench.toml":
            monkeypatch.setenv("SBENCH_CONFIG", "sbench.toml")
    code, out, err = call(*words)
    lines = [line for line in err.splitlines() if not line.startswith("note: settings come from")]
    hint = [f"hint: {case['hint']}"] if "hint" in case else []
    assert (code, out, lines) == (case.get("code", 2), "", [f"sbench: {case['says']}", *hint])
    origin = [variable] if variable else [case["file"]] if "file" in case else words
    assert any(word in case["says"] for word in origin)
    assert not (tmp_path / "sbench-runs").exists()


@uses("feature cost", "feature barrier", "feature until_stable")
@pytest.mark.parametrize(
    "words",
    [
        ("--size", "1000"),
        ("--size", "64"),
        ("--sizes", "uniform:1:2"),
        ("--part-size", "5242880"),
        ("--duration", "5s", "--deadline", "2m", "--timeout", "500ms"),
        ("--barrier", "95%", "--barrier-timeout", "1m"),
        ("--barrier", "0.95", "--until-stable", "2%", "--duration", "60"),
        ("--network-rate", "2.5GB/s"),
    ],
)
def test_the_same_grammar_is_right_everywhere(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def planned(*more: str) -> Any:
        code, out, err = call("plan", "--format", "json", "write", *more)
        assert (code, err.replace(note, "")) == (0, "")
        return out

    note = f"note: settings come from {tmp_path / 'own.toml'}\n"
    flags = dict(zip(words[::2], words[1::2], strict=True))
    expected = planned(*words)
    text = "".join(f'{flag.removeprefix("--")} = "{value}"\n' for flag, value in flags.items())
    (tmp_path / "own.toml").write_text(text)
    monkeypatch.setenv("SBENCH_CONFIG", "own.toml")
    assert planned() == expected
    monkeypatch.delenv("SBENCH_CONFIG")
    for flag, value in flags.items():
        monkeypatch.setenv(f"SBENCH_{flag.removeprefix('--').replace('-', '_').upper()}", value)
    assert planned() == expected


@uses("feature studies")
def test_variables_of_other_programs_are_only_noted(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBENCH_TRACEBACK", "1")
    monkeypatch.setenv("SBENCH_BUCKET", "b")
    assert call("study", "ls")[2] == ""
    # Kubernetes sets such a variable for a service with this name.
    monkeypatch.setenv("SBENCH_SERVICE_PORT_HTTP", "80")
    code, _, err = call("study", "ls")
    problem = "SBENCH_SERVICE_PORT_HTTP is not a variable of sbench, and is ignored"
    assert (code, err) == (0, f"note: {problem}\n")
