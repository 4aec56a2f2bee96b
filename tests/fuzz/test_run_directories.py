"""Run directories of other users: damaged in every file, with every command that reads one."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serverless_bench.cli.main import command_names, place_of
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.origin import sealed
from serverless_bench.job.workload import WORKLOADS
from tests.data.runs import forge
from tests.fuzz.mutations import CASES, CONTROL, mutated, mutated_bytes, mutated_lines
from tests.fuzz.seeds import SEEDS, loaded, policies
from tests.fuzz.watched import Ended, Nursery, nursery
from tests.house.features import features

FILES: Final = ("run.json", "records.jsonl", "ledger.txt", "keys.txt")
REFUSING: Final = "http://127.0.0.1:9"
"""An endpoint without a server."""
KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
}
_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "report": ("report", "run"),
    "report json": ("report", "run", "--format", "json"),
    "report markdown": ("report", "run", "--format", "markdown"),
    "check": ("check", "run"),
    "check json": ("check", "run", "--format", "json"),
    "plot": ("plot", "run"),
    "ls": ("ls", "--run-dir", "."),
    "export csv": ("export", "run", "--format", "csv"),
    "export warp": ("export", "run", "--format", "warp"),
    "export pywren": ("export", "run", "--format", "pywren", "--output", "out.pickle"),
    "export parquet": ("export", "run", "--format", "parquet", "--output", "out.parquet"),
    "compare": ("compare", "a", "b"),
    "history": ("history", "add", "run"),
}
"""Commands that send no request to a store, installed or not."""
COMMANDS: Final = {name: words for name, words in _COMMANDS.items() if words[0] in command_names()}
ASKING: Final[Mapping[str, tuple[str, ...]]] = {
    "resume": ("resume", "run", "--trust"),
    "clean": ("clean", "run", "--trust"),
    "resume untrusted": ("resume", "run"),
    "clean untrusted": ("clean", "run"),
}
"""Commands that may send requests to the store of a run."""
SAFE: Final = (0, 2, 6, 7, 8, 10, 11, 13, 14)
"""Allowed exit codes for a saved run: a report, or one line that names the problem."""


MODULES: Final = (
    *(
        place_of(name).partition(":")[0]
        for name in dict.fromkeys((*(words[0] for words in COMMANDS.values()), "resume", "clean"))
    ),
    *(
        module
        for module in (
            "serverless_bench.features.compare.run_comparison",
            "serverless_bench.features.check.checked_run",
            "serverless_bench.features.formats.export",
            "serverless_bench.features.history.folder",
            "serverless_bench.features.plot.picture",
        )
        if module.split(".")[2] in features()
    ),
    "serverless_bench.metrics.summary",
    "serverless_bench.driver.clean",
    "serverless_bench.report.text",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
)
"""Modules that commands import when they run; importing them again in a child takes seconds."""


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[str, dict[str, bytes]]:
    """Draw a recorded run, and files of it that are not as they were."""
    seed = draw(st.sampled_from(sorted(SEEDS)))
    files: dict[str, bytes] = {}
    for name in draw(st.sets(st.sampled_from(FILES), min_size=1, max_size=2)):
        data = (SEEDS[seed] / name).read_bytes()
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
    shutil.copytree(SEEDS[seed], at)
    for name, data in files.items():
        (at / name).write_bytes(data)


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    # Commands that continue a run need a key, which is created outside of the run the first time.
    sealed({})
    with nursery(*MODULES) as found:
        yield found


POLICIES: Final = {
    *("hedge", "interventions", "parts", "barrier", "rate", "stopped"),
    *("kind delete_many", "kind copy", "kind list", "kind head"),
}


def test_every_workload_client_and_policy_is_spoiled() -> None:
    runs = loaded()
    # Those of `features.testing.faults` are not for runs that last.
    workloads = {name for name in WORKLOADS.names() if not name.startswith("fault-")}
    assert workloads - {run.job.workload for run in runs} == set()
    assert {*CLIENTS.names()} - {run.job.target.client for run in runs} == set()
    assert POLICIES - {policy for run in runs for policy in policies(run)} == set()


Case = tuple[str, dict[str, bytes]]
Watch = Callable[..., Ended]


def try_saved(sbench: Watch, case: Case, name: str) -> None:
    """Run a command that sends no request."""
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        if name == "compare":
            for number in range(4):
                lay(*case, here / "a" / str(number))
                lay(case[0], {}, here / "b" / str(number))
        else:
            lay(*case, here / "run")
        # `ls` keeps the rows of runs in the state folder, so it gets a writable one of its own.
        ended = sbench(here, *COMMANDS[name], environment={"XDG_STATE_HOME": str(here / "state")})
        ended.check(*SAFE)
        assert not ended.asked, ended


def try_asking(sbench: Watch, case: Case, name: str) -> None:
    """Run a command whose store does not answer, on a run that was cut short."""
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        lay(*case, here / "run")
        patient(here / "run" / "run.json")
        records = here / "run" / "records.jsonl"
        lines = records.read_bytes().splitlines(keepends=True)
        records.write_bytes(b"".join(lines[: len(lines) // 2]))
        ended = sbench(here, *ASKING[name], environment=KEYS)
        ended.check(*SAFE, 3, 5)
        assert "--trust" in ASKING[name] or not ended.asked, ended
        hosts = {what for what in ended.asked if "127.0.0.1', 9" not in what}
        assert not hosts, ended


def patient(path: Path) -> None:
    """Run without waiting, in this process, with requests to ``REFUSING`` only."""
    try:
        header = json.loads(path.read_bytes())
        job = header["job"]
        job |= {"executor": "inline", "control": None, "endpoints": [], "barrier": None}
        job |= {"deadline": 2.0, "duration": None}
        job["target"] |= {"endpoint_url": REFUSING, "store": None, "client": "wire"}
        job["transfer"] |= {"retries": 0, "timeout": 1.0}
        if job.get("load", {}).get("array"):
            # Else it would be written where this machine's own files are.
            job["load"]["array"]["path"] = None
        # A careful forgery, because otherwise the content would not be read.
        forge(path.parent, header)
    except (AttributeError, ValueError, KeyError, TypeError):
        # It is refused before anything else is looked at.
        return


@settings(max_examples=CASES, suppress_health_check=[*HealthCheck])
@given(spoiled(), st.sampled_from(sorted(COMMANDS)))
def test_a_spoiled_run_is_reported_on_or_refused(sbench: Nursery, case: Case, name: str) -> None:
    try_saved(sbench, case, name)


@settings(max_examples=max(1, CASES // 4), suppress_health_check=[*HealthCheck])
@given(spoiled(), st.sampled_from(sorted(ASKING)))
def test_a_damaged_run_contacts_no_other_host(sbench: Nursery, case: Case, name: str) -> None:
    try_asking(sbench, case, name)
