"""A runtime of Lithops without sbench is found before any call."""

import json
import site
import venv
from pathlib import Path

import serverless_bench
from tests.commands.command import Sbench

PACKAGE = "serverless_bench"


def environment_without_us(directory: Path) -> Path:
    """Return site-packages of an environment with all packages of this one except sbench."""
    venv.create(directory, symlinks=True)
    (packages,) = (directory / "lib").glob("python*/site-packages")
    for installed in map(Path, site.getsitepackages()):
        for path in installed.iterdir():
            if PACKAGE not in path.name:
                (packages / path.name).symlink_to(path)
    return packages


def test_a_runtime_without_sbench_is_one_line_and_no_call(sbench: Sbench, tmp_path: Path) -> None:
    packages = environment_without_us(tmp_path / "bare")
    runtime, orders = tmp_path / "runtime", tmp_path / "orders"
    python = tmp_path / "bare/bin/python"
    runtime.write_text(f'#!/bin/sh\necho "$2" >> {orders}\nexec {python} "$@"\n')
    runtime.chmod(0o755)
    configuration = tmp_path / "lithops.json"
    configuration.write_text(
        json.dumps({"lithops": {"backend": "localhost"}, "localhost": {"runtime": str(runtime)}})
    )
    here = {"LITHOPS_CONFIG_FILE": str(configuration), "HOME": str(tmp_path)}
    command = ("write", "--executor", "lithops", "--number", 2, "--mb", 1)

    refused = sbench(*command, **here)
    assert refused.code == 4
    text = next(line for line in refused.err.splitlines() if line.startswith("sbench: "))
    assert text == (
        f"sbench: Lithops could not start: its runtime '{runtime}' cannot import {PACKAGE}"
    )
    assert "hint: install serverless-bench where functions run" in refused.err
    assert orders.read_text().split() == ["get_metadata"]

    # Lithops caches that answer in the user's home; a later installation is found anyway.
    (packages / "ours.pth").write_text(f"{Path(serverless_bench.__file__).parents[1]}\n")
    done = sbench(*command, "--format", "json", **here)
    assert done.code == 0, done.err
    assert done.json["ok"] == 2
    assert orders.read_text().split() == ["get_metadata", "get_metadata", "run_job"]
