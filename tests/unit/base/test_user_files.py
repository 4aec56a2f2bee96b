"""Files that a user names, and that an attacker may have made."""

import os
from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.base.user_files import MAX_TEXT_BYTES, parse_toml, read_text, read_toml
from tests.tables import each_row


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("pipe", "zeros", "."):
        with pytest.raises(OSError, match="not a regular file"):
            read_text(tmp_path / name)


def test_a_text_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"a" * (MAX_TEXT_BYTES + 1))
    with pytest.raises(OSError, match="more than 1024 KiB"):
        read_text(path)


@each_row(
    ("text", "says"),
    [
        (f"a = {'[' * 100_000}", "are nested more than 16 levels"),
        (f"a = {'{a=' * 100_000}", "are nested more than 16 levels"),
        (f"a = {'[' * 17}1{']' * 17}", "are nested more than 16 levels"),
        (f"{'.'.join('a' * 100_000)} = 1", "line 1: a key has more than 16 parts"),
        ("a" * 100_000 + "=1", "characters"),
        (f"a = {'9' * 5000}", "an invalid number"),
        (f"a = 0x{'f' * 5000}", "a is a number of 20000 bits"),
        ("[a]\nb = [nan]", "a.b is nan"),
        ("a = -inf", "a is -inf"),
        (f"a = '{'b' * 20_000}'", "a has 20000 characters"),
    ],
)
def test_toml_that_is_made_to_be_hard_to_read(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=says):
        parse_toml(text)
    (tmp_path / "file.toml").write_text(text)
    with pytest.raises(UsageError, match=r"cannot read the job file .*file\.toml: "):
        read_toml(tmp_path / "file.toml", "the job file")


def test_toml_of_every_day() -> None:
    assert parse_toml("a.b.c = 1\n[d]\ne = [[1, 2], {f = 'g'}]") == {
        "a": {"b": {"c": 1}},
        "d": {"e": [[1, 2], {"f": "g"}]},
    }


def test_a_name_that_no_file_can_have_is_an_error_like_any_other() -> None:
    with pytest.raises(OSError, match="the name of a file cannot contain NUL"):
        read_text(Path("a\0b"))
