"""Contract tests in a process of their own, for a library that takes one target per process."""

import inspect
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from serverless_bench.job.target import Target
from tests.contract.declared import info_of

ALONE = {
    "test_wrong_credentials_are_refused",
    "test_missing_credentials_are_refused",
    "test_a_closed_port_is_a_lost_connection",
    # Another timeout is another setting, too.
    "test_a_missing_bucket_is_not_found",
}
"""Tests that give a client another endpoint, other credentials or another timeout."""


def run(item: pytest.Function) -> bool:
    """Run the test in another process, if it needs that, and tell whether it did."""
    target = item.funcargs.get("target")
    if not isinstance(target, Target) or item.originalname not in ALONE:
        return False
    if "one_store" not in info_of(target.client).quirks:
        return False
    names = (type(item.instance).__name__, item.originalname, str(item.funcargs["key"]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.apart", *names, json.dumps(asdict(target))],
        cwd=Path(__file__).parents[2],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return True


def main(class_name: str, test_name: str, key: str, target: str) -> None:
    from tests.contract import test_clients

    test = getattr(getattr(test_clients, class_name)(), test_name)
    known = {
        "target": Target(**json.loads(target)),
        "key": key,
        "monkeypatch": pytest.MonkeyPatch(),
    }
    test(**{name: known[name] for name in inspect.signature(test).parameters})


if __name__ == "__main__":
    main(*sys.argv[1:])
