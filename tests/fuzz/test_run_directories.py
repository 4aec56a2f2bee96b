"""Run directories from somebody else: spoiled in every file, under every command that reads one."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutations import CASES, CONTROL, mutated, mutated_bytes, mutated_lines
from tests.fuzz.watched import Nursery, nursery

RECORDED: Final = Path(__file__).parents[1] / "recorded"
SEEDS: Final = sorted(path.name for path in RECORDED.iterdir())
FILES: Final = ("run.json", "records.jsonl", "ledger.txt", "keys.txt")
REFUSING: Final = "http://127.0.0.1:9"
"""An endpoint at which nobody listens."""
KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
}
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "report": ("report", "run"),
    "report json": ("report", "run", "--format", "json"),
    "report markdown": ("report", "run", "--format", "markdown"),
    "report csv": ("report", "run", "--format", "csv"),
    "check": ("check", "run"),
    "check json": ("check", "run", "--format", "json"),
    "plot": ("plot", "run"),
    "ls": ("ls", "--run-dir", "."),
    "export csv": ("export", "run", "--format", "csv"),
    "export warp": ("export", "run", "--format", "warp"),
    "export pywren": ("export", "run", "--format", "pywren", "--out", "out.pickle"),
    "export parquet": ("export", "run", "--format", "parquet", "--out", "out.parquet"),
    "compare": ("compare", "a", "b"),
}
"""Commands that ask no store."""
SAFE: Final = (0, 2, 6, 7, 8, 10, 11, 13, 14)
"""Codes of what a saved run may come to: a report, or one line that says what is wrong."""


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    modules = ("report", "check", "plot", "ls", "export", "compare", "resume", "clean")
    with nursery(*(f"serverless_bench.cli.{name}" for name in modules), *WARM) as found:
        yield found


WARM: Final = (
    "serverless_bench.analysis.run_comparison",
    "serverless_bench.analysis.summary",
    "serverless_bench.driver.check",
    "serverless_bench.driver.clean",
    "serverless_bench.formats.export",
    "serverless_bench.plots",
    "serverless_bench.reporters.text",
    "matplotlib.backends.backend_agg",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
)
"""What commands import when they run; a child that imports it again takes seconds."""


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[str, dict[str, bytes]]:
    """Draw a recorded run, and files of it that are not as they were."""
    seed = draw(st.sampled_from(SEEDS))
    files: dict[str, bytes] = {}
    for name in draw(st.sets(st.sampled_from(FILES), min_size=1, max_size=2)):
        data = (RECORDED / seed / name).read_bytes()
        match name:
            case "run.json" if draw(st.integers(0, 4)):
                files[name] = json.dumps(draw(mutated(json.loads(data)))).encode()
            case "records.jsonl":
                files[name] = draw(mutated_lines(data.decode()))
            case "ledger.txt" | "keys.txt" if draw(st.booleans()):
                lines = [*data.decode().splitlines(), "key"]
                at = draw(st.integers(0, len(lines) - 1))
                lines[at] = draw(st.sampled_from([*CONTROL, "../..", "x" * 5000])) + lines[at]
                files[name] = "".join(f"{line}\n" for line in lines).encode()
            case _:
                files[name] = draw(mutated_bytes(data))
    return seed, files


def lay(seed: str, files: Mapping[str, bytes], at: Path) -> None:
    shutil.copytree(RECORDED / seed, at)
    for name, data in files.items():
        (at / name).write_bytes(data)


@settings(max_examples=CASES, suppress_health_check=[*HealthCheck])
@given(spoiled(), st.sampled_from(sorted(COMMANDS)))
def test_a_spoiled_run_is_reported_on_or_refused(
    sbench: Nursery, given_: tuple[str, dict[str, bytes]], name: str
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        if name == "compare":
            for number in range(4):
                lay(*given_, here / "a" / str(number))
                lay(given_[0], {}, here / "b" / str(number))
        else:
            lay(*given_, here / "run")
        ended = sbench(here, *COMMANDS[name])
        ended.check(*SAFE)
        assert not ended.asked, ended
