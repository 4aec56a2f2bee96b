from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.errors import UsageError
from serverless_bench.keys import declared_size, object_key, read_key_file, write_key_file


@given(st.integers(1, 10**15), st.text(max_size=20), st.integers(0, 10**6), st.integers(0, 9))
def test_a_key_gives_its_size_back(size: int, prefix: str, index: int, attempt: int) -> None:
    slash = f"{prefix}/"
    key = object_key(prefix=slash, run_id="r", index=index, attempt=attempt, number=0, size=size)
    assert declared_size(key) == size


@pytest.mark.parametrize(
    "key",
    ["report.pdf", "a/b.12", "0123.5", "f" * 32, "f" * 32 + ".", "f" * 32 + ".0", "F" * 32 + ".5"],
)
def test_a_foreign_key_declares_nothing(key: str) -> None:
    assert declared_size(key) is None


def test_a_key_file_has_one_key_per_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    write_key_file(path, ["a/1", "b 2"])
    assert path.read_text() == "a/1\nb 2\n"
    assert read_key_file(path) == ["a/1", "b 2"]


def test_a_key_file_from_windows_works(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes(b"a\r\nb\r\n")
    assert read_key_file(path) == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "has no keys"),
        (b"\n\n", "has no keys"),
        (b"\x80\x04\x95pickle", "not text"),
        (b"good\nba\x00d\n", "line 2"),
        (b"x" * 1025, "line 1"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=words):
        read_key_file(path)


def test_a_missing_key_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the key file"):
        read_key_file(tmp_path / "none")
