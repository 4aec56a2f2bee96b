"""A folder with the files of a stack: replaced when all of them are written, or not at all."""

import errno
from collections.abc import Iterable
from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.features.aws.stack import folder as subject
from serverless_bench.features.aws.stack.template import MARK


def kept(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_stack_is_replaced_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = tmp_path / "stack"
    subject.write_folder(stack)
    (stack / "samconfig.toml").write_text("mine")
    (stack / "serverless_bench" / "old.py").write_text("old")
    before = kept(tmp_path)

    def full(folder: Path, *_: str, clients: Iterable[str]) -> None:
        (folder / "serverless_bench").mkdir()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(subject, "copy_source", full)
        with pytest.raises(UsageError, match="No space left"):
            subject.write_folder(stack, f"{MARK} new")
        with pytest.raises(UsageError, match="No space left"):
            subject.write_folder(tmp_path / "other")
    assert kept(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} == {"stack"}
    subject.write_folder(stack, f"{MARK} new")
    after = kept(tmp_path)
    assert after[stack / "template.yaml"].endswith(b" new")
    assert after[stack / "samconfig.toml"] == b"mine"
    assert stack / "serverless_bench" / "old.py" not in after
    assert len(after) == len(before) - 1


def test_a_link_in_the_folder_is_replaced_and_not_followed(tmp_path: Path) -> None:
    stack, victim = tmp_path / "stack", tmp_path / "victim"
    subject.write_folder(stack)
    (stack / "template.yaml").rename(victim)
    before = victim.read_bytes()
    (stack / "template.yaml").symlink_to(victim)
    subject.write_folder(stack, f"{MARK} new")
    assert victim.read_bytes() == before
    assert not (stack / "template.yaml").is_symlink()
