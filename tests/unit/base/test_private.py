"""Directories that only this user can access."""

import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from serverless_bench.base.errors import StoreError
from serverless_bench.base.user_files import make_private_directory, own_directory
from tests.tables import each_row


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_one_is_closed_to_others(tmp_path: Path) -> None:
    made = own_directory(tmp_path / "deep" / "new")
    assert mode(made) == 0o700
    assert own_directory(made) == made


def test_one_that_others_may_read_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert mode(own_directory(tmp_path)) == 0o755


@pytest.mark.parametrize("others", [0o720, 0o702, 0o1777])
def test_one_that_others_may_write_is_refused(tmp_path: Path, others: int) -> None:
    tmp_path.chmod(others)
    with pytest.raises(StoreError, match="other users may write to") as refused:
        own_directory(tmp_path)
    assert refused.value.hint == f"chmod go-w {tmp_path}"


def test_a_link_of_ones_own_may_lead_to_a_larger_disk(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    assert own_directory(tmp_path / "link") == tmp_path / "link"


def test_sockets_go_where_the_session_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = make_private_directory("a-")
    assert (made.parent, mode(made), made.name.startswith("a-")) == (tmp_path, 0o700, True)
    assert make_private_directory("a-") != made


def test_short_paths_are_used_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    made = make_private_directory("a-")
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(made / "filer.sock"))
    assert mode(made) == 0o700
    shutil.rmtree(made)


@each_row("spoiled", ["open", "link", "missing", "relative", "empty"])
def test_another_folder_is_used_if_needed(
    spoiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    runtime = {"relative": ".", "empty": ""}.get(spoiled, str(tmp_path / spoiled))
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    made = make_private_directory("a-")
    assert tmp_path not in made.parents
    assert mode(made) == 0o700
    made.rmdir()
