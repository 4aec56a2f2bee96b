"""A home with files that are precious, and a folder in it with files of somebody else."""

import json
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.stores.servers import KEYS

RECORDED: Final = Path(__file__).parents[1] / "recorded" / "write"
MARKED: Final = {
    **KEYS,
    "AWS_SESSION_TOKEN": "MARKEDTOKEN",
    "AZURE_STORAGE_ACCOUNT_NAME": "mine",
    "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=MARKEDSASSIG",
}
"""Credentials of the user."""
_LISTENERS: Final = ("store", "scheduler", "index", "other")
_SHADOWS: Final = ("venv", "pip", "click", "numpy", "lithops", "msgspec", "vl_convert", "yaml")
"""Modules that a Python with the current folder in its path would load from there."""


@dataclass(frozen=True)
class HostileFolder:
    """The folder, and the log of its effects."""

    home: Path
    listeners: Mapping[str, socket.socket]

    @property
    def path(self) -> Path:
        return self.home / "theirs"

    @property
    def marker(self) -> Path:
        """File that each program and module of the folder makes."""
        return self.home / "RAN"

    @property
    def precious(self) -> Path:
        return self.home / ".bashrc"

    @property
    def program(self) -> str:
        return f"sh -c 'touch {self.marker}; false'"

    @property
    def environment(self) -> dict[str, str]:
        """The user's variables."""
        caches = ("MPLCONFIGDIR", "SBENCH_LOCALSTACK_DIR", "UV_CACHE_DIR", "XDG_CACHE_HOME")
        return {
            **MARKED,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            # LocalStack's packages cannot be downloaded, so only the code before that is tested.
            "UV_OFFLINE": "1",
            **{name: str(self.home / ".cache" / name) for name in caches},
        }

    def url(self, name: str, scheme: str = "http") -> str:
        """Return the address of a listener."""
        return f"{scheme}://127.0.0.1:{self.listeners[name].getsockname()[1]}"

    def asked(self) -> list[str]:
        """Return the listeners that somebody has connected to."""
        names = []
        for name, listener in self.listeners.items():
            with suppress(BlockingIOError):
                listener.accept()[0].close()
                names.append(name)
        return names

    def kept(self) -> dict[str, bytes]:
        """Return the files that no command may touch: all except runs, caches and its own state."""
        own = (".cache/", ".local/state/sbench/", "theirs/sbench-runs/")
        free = tuple(f"{self.home}/{folder}" for folder in own)
        files = (str(path) for path in self.home.rglob("*") if not path.is_dir())
        return {name: Path(name).read_bytes() for name in files if not name.startswith(free)}


@contextmanager
def hostile_folder(scratch: Path) -> Iterator[HostileFolder]:
    """Make the home and the folder, which has every kind of file but an ``sbench.toml``."""
    with ExitStack() as stack:
        listeners = {
            name: stack.enter_context(socket.create_server(("127.0.0.1", 0))) for name in _LISTENERS
        }
        for listener in listeners.values():
            listener.settimeout(0)
        folder = HostileFolder(scratch / "home", listeners)
        for name in (".bashrc", ".ssh/authorized_keys", ".config/precious"):
            (folder.home / name).parent.mkdir(parents=True, exist_ok=True)
            (folder.home / name).write_text("precious")
        shutil.copytree(RECORDED, folder.path / "sbench-runs" / "recorded")
        for name, text in _files(folder).items():
            (folder.path / name).write_text(text)
            (folder.path / name).chmod(0o755)
        yield folder


def _files(folder: HostileFolder) -> dict[str, str]:
    module = f"open({str(folder.marker)!r}, 'w').close()\nraise SystemExit(1)\n"
    python = str(folder.path / "py")
    lithops = {"lithops": {"backend": "localhost"}, "localhost": {"runtime": python}}
    return {
        ".lithops_config": json.dumps(lithops),
        "py": f'#!/bin/sh\ntouch {folder.marker}\nexec {sys.executable} "$@"\n',
        ".env": f"AWS_ENDPOINT_URL={folder.url('other')}\n",
        "uv.toml": f'index-url = "{folder.url("index")}"\n',
        "security.toml": "[",
        "sitecustomize.py": module,
        **{f"{name}.py": module for name in _SHADOWS},
    }
