"""The embedded store writes and deletes only in a directory that sbench created for it."""

from pathlib import Path

import pytest

from serverless_bench.base.errors import StoreError
from serverless_bench.stores.embedded import MARK, Lease, claim, clear
from tests.commands.command import Call


def own_files(folder: Path) -> dict[str, str]:
    """Make folders and files of a user, with names that the store uses, and return all."""
    texts = {
        "data/thesis.csv": "my only measurements",
        "logs/app.log": "x",
        "lock": "pid 77",
        "keeper.log": "mine",
        "store.log": "mine",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "data").chmod(0o755)
    return kept(folder)


def kept(folder: Path) -> dict[str, str]:
    return {
        f"{path.relative_to(folder)} {path.stat().st_mode:o}": path.read_text()
        if path.is_file()
        else ""
        for path in sorted(folder.rglob("*"))
    }


def test_files_of_the_user_are_neither_deleted_nor_written(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    before = own_files(project)
    monkeypatch.setenv("SBENCH_STORE_DIR", str(project))
    for words in (("store", "clear", "--yes"), ("store", "start")):
        code, out, err = call(*words)
        assert (code, out) == (StoreError.exit_code, ""), err
        assert f"{project} has files that are not of the embedded store" in err
        assert f"SBENCH_STORE_DIR to a new folder: {project}" in err
        assert kept(project) == before
    with pytest.raises(StoreError, match="not of the embedded store"):
        Lease.take(project)
    assert kept(project) == before


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_or_empty_folder_becomes_the_stores(tmp_path: Path, *, exists: bool) -> None:
    folder = tmp_path / "store"
    if exists:
        folder.mkdir()
    claim(folder)
    (folder / "data").mkdir()
    (folder / "data/1.dat").write_text("object")
    (folder / "mine").write_text("mine")
    claim(folder)
    clear(folder)
    assert {path.name for path in folder.iterdir()} == {MARK, "lock", "mine"}
