"""LocalStack's own Python environment, made when it is first wanted.

It pins a hundred packages, and some that sbench needs in other versions, so it never
goes where sbench is installed. The pins lie next to this file, with hashes: newer
releases of what LocalStack depends on break it, and newer ones of itself want an account.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

import platformdirs

from serverless_bench.errors import StoreError
from serverless_bench.process.private import own_directory

VERSIONS: Final = {"3.11": "4.13.1", "3.12": "4.13.1", "3.13": "2026.3.0"}
"""The last LocalStack that runs on each Python without an account; tried on each."""
_DATA: Final = files("serverless_bench.lab.localstack")
_PLUGIN: Final = "sbench_executor"
_COPIED: Final = {
    f"{_PLUGIN}.py": _DATA.joinpath("executor.py"),
    "sbench_gateway.py": _DATA.joinpath("gateway.py"),
    "sbench_callers.py": files("serverless_bench.process").joinpath("callers.py"),
}
"""What LocalStack loads of ours, and where it comes from."""
_ENTRY_POINTS: Final = f"""\
[localstack.lambda.runtime_executor]
sbench = {_PLUGIN}:SbenchPlugin
[localstack.runtime.server]
sbench = sbench_gateway:SbenchServerPlugin
"""
_METADATA: Final = f"Metadata-Version: 2.1\nName: {_PLUGIN.replace('_', '-')}\nVersion: 0\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStackInstallation:
    """A LocalStack that can be started."""

    version: str
    python: Path
    """The interpreter that has it."""


def default_directory() -> Path:
    """Return where LocalStack is installed: SBENCH_LOCALSTACK_DIR, or the user's cache."""
    directory = os.environ.get("SBENCH_LOCALSTACK_DIR")
    usual = platformdirs.user_cache_path("sbench") / "localstack"
    return Path(directory).absolute() if directory else usual


def prepare(root: Path, report: Callable[[str], None] = lambda _: None) -> LocalStackInstallation:
    """Return the LocalStack in ``root``, and install it there if it is not yet.

    Parameters
    ----------
    root
        Where; ``default_directory`` is the user's.
    report
        Told what takes so long.

    Raises
    ------
    StoreError
        If there is no Python for it, or it cannot be installed.
    """
    python, version = _find_python()
    pins = _DATA.joinpath(f"{version}.txt").read_bytes()
    name = hashlib.blake2b(pins + python.encode(), digest_size=6).hexdigest()
    home = root / f"{version}-{name}"
    try:
        # What another user put there would run as us.
        own_directory(root)
        with (root / f"{home.name}.lock").open("w") as lock:
            # Two commands at the same time install it once.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (home / "complete").exists():
                report(f"installing LocalStack {version} in {home}")
                _install(python, version, home)
            _add_plugin(home)
    except OSError as exc:
        raise StoreError(
            f"cannot keep LocalStack in {root}: {exc.strerror}",
            hint="set SBENCH_LOCALSTACK_DIR to a directory on a disk with room",
        ) from exc
    return LocalStackInstallation(version=version, python=home / "bin" / "python")


def _find_python() -> tuple[str, str]:
    """Return a Python that LocalStack runs on, ours if it does, and which LocalStack."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if ours in VERSIONS:
        return sys.executable, VERSIONS[ours]
    for python, version in VERSIONS.items():
        found = shutil.which(f"python{python}")
        if found is not None and _is_python(found, python):
            return found, version
    raise StoreError(
        f"LocalStack runs on Python {', '.join(VERSIONS)}, and there is none",
        hint="install one of them; sbench itself may stay where it is",
    )


def _install(python: str, version: str, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    pins = str(_DATA.joinpath(f"{version}.txt"))
    inside = str(home / "bin" / "python")
    beside = shutil.which("uv", path=Path(sys.executable).parent) or shutil.which("uv")
    if beside:
        flags = ["--without-pip"]
        # As pip does it: a thousand modules, of which every start needs most.
        install = [beside, "pip", "install", "--compile-bytecode", "--python", inside]
    else:
        flags = []
        install = [inside, "-I", "-m", "pip", "install", "--disable-pip-version-check"]
    _do([python, "-I", "-m", "venv", *flags, str(home)], home.parent)
    _do([*install, "--require-hashes", "-r", pins], home.parent)
    (home / "complete").touch()


def _add_plugin(home: Path) -> None:
    """Have our executor and our server in it, as this sbench has them."""
    packages = next((home / "lib").glob("python*/site-packages"))
    about = packages / f"{_PLUGIN}-0.dist-info"
    about.mkdir(exist_ok=True)
    for path, text in (
        *((packages / name, source.read_text("utf-8")) for name, source in _COPIED.items()),
        (about / "METADATA", _METADATA),
        (about / "entry_points.txt", _ENTRY_POINTS),
    ):
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _do(command: list[str], folder: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own commands
        command,
        # Not where a uv.toml could be another's; and with -I Python takes no module from there.
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise StoreError(
            f"LocalStack cannot be installed: {last}",
            hint=f"it failed at: {' '.join(command[:5])}",
        )


def _is_python(program: str, version: str) -> bool:
    # A name on PATH may be a stand-in that runs nothing.
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run(  # noqa: S603 - found by its name on PATH
        [program, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() == version
