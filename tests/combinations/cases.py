"""One case: made of flags, run as a user runs it but in this process.

Its results are compared with the store's log.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.units import parse_size
from serverless_bench.cli.main import main
from serverless_bench.driver.cleanup import delete, delete_control
from serverless_bench.features.audit.sources import ReportedRun, read_reported_run
from serverless_bench.features.check.audited import Audit
from serverless_bench.features.check.checked_run import audited
from serverless_bench.features.loopback.faults import FaultKind, FaultPlan
from serverless_bench.features.loopback.objects import StoredObject
from serverless_bench.features.loopback.request_log import RequestLog
from serverless_bench.features.loopback.server import LoopbackServer
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.keys import object_key
from serverless_bench.rundir.run import load_run
from tests.clouds.sam import ARCHITECTURE
from tests.combinations.factors import LONG, NO, STABLE
from tests.commands.command import Apart, Done
from tests.commands.in_process import ONE_STORE

FUNCTIONS: Final = 2
FAULTS: Final[Mapping[str, Mapping[FaultKind, float]]] = {
    NO: {},
    "refused": {FaultKind.SLOWDOWN: 0.15, FaultKind.ERROR: 0.1},
    "cut": {FaultKind.RESET_PUT: 0.15, FaultKind.RESET_GET: 0.15, FaultKind.TRUNCATE: 0.15},
    "spoiled": {FaultKind.SHORT: 0.15, FaultKind.STALE: 0.15, FaultKind.FLIP: 0.15},
}
BUCKETS: Final = {"standard": "any", "directory": "any--use1-az4--x-s3", "google": "gs://any"}
OWN: Final = """
def mine(tools):
    for number in range(OBJECTS):
        key = tools.new_key(number)
        tools.put(key)
        with tools.measure("back"):
            tools.check(key)
"""
_ARRAY: Final = ("--shape", "64,64", "--chunks", "32,32")
_HARMLESS_MIX: Final = "get=3,get_range=2,head=1"
_MIX: Final = "get=5,put=3,get_range=3,head=1,list=1,delete=1"

Case = Mapping[str, str]


@dataclass
class Bench:
    """A store, and a place for runs."""

    server: LoopbackServer
    directory: Path
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    arrays: dict[tuple[str, str], Path] = field(default_factory=dict)
    dask: Callable[[], str] = str
    """Returns the address of a scheduler."""

    def check(self, case: Case) -> None:
        """Run a case; its report, its bill and its deletions must be correct."""
        with self.workers(case), self.logged(case) as path:
            ended, runs = self.run(case)
            assert ended.code in ({0} if case["faults"] == NO else {0, 6, 7}), ended
            reports = [json.loads(line) for line in ended.out.splitlines() if line[:1] == "{"]
            if case["resume"] == "killed":
                cut(runs[-1])
                again = command_of(case)("resume", runs[-1], "--format", "json")
                # A run directory has no code, and a race is over: missing functions stay missing.
                alone = case["workload"].startswith(("custom", "conditional"))
                ends = {0, 6, 7} if case["faults"] != NO or alone else {0}
                assert again.code in ends, again
                reports[-1] = json.loads(again.out.splitlines()[-1])
            self.server.state.request_log.settle()
            for run, report in zip(runs, reports, strict=True):
                agree(audited(load_run(run), path))
                true_report(read_reported_run(run), report)
            if case["faults"] == "spoiled":
                # An object that reads as somebody else's stays, and rightly so.
                self.server.state.fault_plan = FaultPlan(0, {})
            for run in runs:
                self.clean(run)
            self.server.state.request_log.settle()
            for run in runs:
                left = audited(load_run(run), path, cleaned=True).left
                assert not left, f"left by {run}: {left}"

    def refuses(self, case: Case) -> tuple[Done, int]:
        """Run a case that must be refused; return the output, and the store's log."""
        self.prepare(case)
        before = sum(self.server.state.statistics()["requests"].values())
        ended, _ = self.run(case)
        return ended, sum(self.server.state.statistics()["requests"].values()) - before

    @contextmanager
    def workers(self, case: Case) -> Iterator[None]:
        """Start a worker for each function, if no other process runs them."""
        scheme = "gs" if case["bucket"] == "google" else "s3"
        place = ("--control", f"{scheme}://{BUCKETS['standard']}/{CONTROL_PREFIX}")
        number = FUNCTIONS if case["executor"] == "workers" else 0
        # Code is allowed in the environment, as for functions of the Lambda host.
        there = Apart(self.directory, {})
        started = [
            there.start("worker", *place, "--endpoint-url", self.server.endpoint_url)
            for _ in range(number)
        ]
        for worker in started:
            assert worker.stdout is not None
            assert worker.stdout.readline()
        try:
            yield
        finally:
            for worker in started:
                worker.kill()
                worker.communicate()

    @contextmanager
    def logged(self, case: Case) -> Iterator[Path]:
        """Yield a file of its own for the store's log, with the faults of the case."""
        path = self.directory / f"request_log-{next(self.numbers)}.jsonl"
        self.prepare(case)
        before, self.server.state.request_log = self.server.state.request_log, RequestLog(path)
        self.server.state.fault_plan = FaultPlan(7, FAULTS[case["faults"]])
        try:
            yield path
        finally:
            self.server.state.fault_plan = FaultPlan(0, {})
            self.server.state.request_log.close()
            self.server.state.request_log = before

    def run(self, case: Case) -> tuple[Done, list[Path]]:
        name = f"case-{next(self.numbers)}"
        ended = command_of(case)(*self.flags(case, name))
        root = self.directory / name
        if case["workload"] == "job file":
            return ended, sorted(path.parent for path in root.glob("*/run.json"))
        return ended, [root]

    def prepare(self, case: Case) -> None:
        """Write the arrays to be read, unless they exist."""
        place = (prefix_of(case), case["objects"])
        if case["workload"] != "array read" or place in self.arrays:
            return
        file = self.directory / f"arrays-{next(self.numbers)}"
        done = command(
            *("array", "write", *_ARRAY, "--number", FUNCTIONS, "--objects", case["objects"]),
            *("--prefix", place[0], "--key-file", file, "--executor", "inline", "--format", "json"),
            *("--name", f"arrays-{next(self.numbers)}", "--run-dir", self.directory),
            *("--endpoint-url", self.server.endpoint_url, "--bucket", BUCKETS["standard"]),
        )
        assert done.code == 0, done
        self.arrays[place] = file

    def flags(self, case: Case, name: str) -> list[str | Path | int]:
        """Return the command line of a case."""
        common: list[str | Path | int] = [
            *("--endpoint-url", self.server.endpoint_url, "--timeout", 20),
            *("--bucket", BUCKETS[case["bucket"]]),
            *("--client", case["client"], "--executor", case["executor"], "--format", "json"),
            *("--run-dir", self.directory, "--name", name, "--verify", case["verify"]),
        ]
        for factor, flag in _FLAGS.items():
            if case[factor] not in (NO, *_DEFAULTS.get(factor, ())):
                common += [flag, ARCHITECTURE if factor == "arch" else case[factor]]
        common += [] if case["duration"] == NO else ["--duration", "0.2"]
        common += ["--until-stable", "30%"] if case["duration"] == STABLE else []
        common += [f"--no-{name}" for name in ("probe", "progress-objects") if case[name] == NO]
        if case["executor"] in {"lambda", "workers", "dask"}:
            common += ["--start-timeout", 20]
            if case["bucket"] == "directory":
                common += ["--control-prefix", f"s3://{BUCKETS['standard']}/{CONTROL_PREFIX}"]
        if case["executor"] == "lambda":
            common += ["--function", "sbench-worker"]
        elif case["executor"] == "dask" and case["slots"] == NO:
            common += ["--scheduler", self.dask()]
        elif case["executor"] == "local":
            common += ["--concurrency", FUNCTIONS]
        return [*self._own_flags(case, name), *common]

    def _own_flags(self, case: Case, name: str) -> list[str | Path | int]:
        """Return the command, and the flags that only this command has."""
        number: list[str | Path | int] = ["--number", FUNCTIONS, "--objects", case["objects"]]
        size = ["--sizes" if ":" in case["size"] else "--size", case["size"]]
        new = [*size, *_if(case, "compressibility", "1"), "--prefix", prefix_of(case)]
        reads = [*_if(case, "split", NO), *_if(case, "repeats", "1", "--read-times")]
        array = [] if case["size"] == "4KiB" else size
        array += _if(case, "compressibility", "1")
        own: list[str | Path | int]
        match case["workload"]:
            case "write" | "custom" | "list" as verb:
                own = [verb, *self._code_or_tree(case), *number, *new]
            case "read" | "read existing" | "mixed existing":
                own = [*self._reading(case, name), *number]
            case "mixed":
                ends = [] if case["duration"] != NO else ["--operations", "8"]
                own = ["mixed", "--mix", _MIX, *ends, *number, *new]
            case "parquet":
                own = ["parquet", *number, *self._scan(case), "--prefix", prefix_of(case)]
                own += [*_if(case, "compressibility", "1"), *(size if ":" in case["size"] else [])]
            case "array write" | "array read" as verbs:
                own = [*verbs.split(), *_ARRAY, *number, *array, *self._arrays_of(case)]
            case "conditional increment" | "conditional claim" | "conditional append":
                own = ["conditional", *number, *_contention(case), "--prefix", prefix_of(case)]
                own += array
            case "replay":
                # All functions of a replay run at the same time.
                number = ["--number", 1 if case["executor"] == "inline" else FUNCTIONS]
                own = ["replay", self._log(case), *number, "--prefix", prefix_of(case)]
                own += _if(case, "compressibility", "1")
            case "shuffle objects" | "shuffle ranges":
                own = ["shuffle", *_shuffled(case), "--prefix", prefix_of(case), *size]
                own += _if(case, "compressibility", "1")
            case _:
                own = ["run", self._job_file(case, name), "--prefix", prefix_of(case)]
                reads = []  # of its stages
        return [*own, *reads, *self._replay_flags(case)]

    def _replay_flags(self, case: Case) -> list[str | Path]:
        """Return the flags for the instants and the names of a replay."""
        flags: list[str | Path] = [*_if(case, "speed", NO), *_if(case, "max gap", NO, "--max-gap")]
        if case["secret"] == NO:
            return flags
        file = self.directory / "secret"
        file.write_text("a secret of 16 bytes or more")
        return [*flags, "--secret-file", file]

    def _code_or_tree(self, case: Case) -> list[str]:
        """Return the name of a function, or the shape of a tree of keys."""
        if case["workload"] == "custom":
            return [self._code(case)]
        flags = ["--breadth", "1"] if case["objects"] == "1" else ["--breadth", "2"]
        # Functions that run one after the other do not list each other's keys.
        alone = case["executor"] in {"inline", "workers"} or case["warm-up"] != "0"
        flags += ["--by", "sequence"] if case["connections"] == "2" and not alone else []
        flags += ["--versions"] if case["stat"] == "each" and case["client"] == "wire" else []
        return flags if case["workload"] == "list" else []

    def _code(self, case: Case) -> str:
        """Write a function of the user, and return its name."""
        file = self.directory / f"own_{next(self.numbers)}.py"
        file.write_text(OWN.replace("OBJECTS", case["objects"]))
        return f"{file}:mine"

    def _arrays_of(self, case: Case) -> list[str | Path]:
        """Return the flag for where arrays are written, or which are read."""
        if case["workload"] == "array write":
            return ["--prefix", prefix_of(case)]
        return ["--key-file", self.arrays[prefix_of(case), case["objects"]]]

    def _scan(self, case: Case) -> list[str | Path]:
        """Return a layout, and flags of a scan that follow from those of the case."""
        flags: list[str | Path] = ["--column-fraction", "100%"] if case["threads"] == "2" else []
        flags += ["--coalesce-gap", "64KiB"] if case["connections"] == "2" else []
        flags += ["--footer-guess", "100"] if case["warm-up"] == "1" else []
        if case["size"] != "4KiB":
            size = case["size"].rpartition(":")[2]
            return [*flags, "--size", size, "--row-groups", "2", "--columns", "3"]
        file = self.directory / f"layout-{next(self.numbers)}.json"
        file.write_text('{"row_groups": [[[4, 100], [104, 900]], [[2000, 300], [2300, 40]]]}')
        return [*flags, "--layout-from", file]

    def _keys(self, case: Case, name: str) -> Path:
        """Write a list of objects that the store has; it knows their bytes by their keys."""
        each = int(case["objects"]) * (1 if case["split"] != NO else FUNCTIONS)
        file = self.directory / f"{name}.keys"
        keys = [
            object_key(
                prefix=prefix_of(case), run_id=name, index=0, launch=0, number=number,
                size=size_of(case, number), compressibility=float(case["compressibility"]),
            )
            for number in range(each)
        ]  # fmt: skip
        file.write_text("".join(f"{key}\n" for key in keys))
        return file

    def _reading(self, case: Case, name: str) -> list[str | Path]:
        """Return a command that reads given objects, and flags that refuse others."""
        if case["workload"] == "read":
            return ["read", "--key-file", self._keys(case, name)]
        verb, _, _ = case["workload"].partition(" ")
        flags = [*_if(case, "compressibility", "1")]
        flags += ["--sizes", case["size"]] if ":" in case["size"] else []
        flags += ["--mix", _HARMLESS_MIX] if verb == "mixed" else []
        flags += ["--operations", "8"] if verb == "mixed" and case["duration"] == NO else []
        return [verb, "--existing", self._existing(case, name), *flags]

    def _existing(self, case: Case, name: str) -> str:
        """Put objects that sbench did not write into the store, and return their prefix."""
        size = parse_size(case["size"].rpartition(":")[2])
        content = StoredObject(key="", size=size, verbatim=bytes(size))
        bucket = BUCKETS[case["bucket"]].rpartition("/")[2]
        for number in range(int(case["objects"]) * FUNCTIONS):
            self.server.state.objects.put(bucket, replace(content, key=f"{name}/{number} ä"))
        return f"{name}/"

    def _log(self, case: Case) -> Path:
        """Write a log of an object of its own for each operation, and of others for all."""
        rows = ["time,op,key,size,offset,length,status"]
        for number, kind in enumerate(("get", "put", "get_range", "head", "list", "delete") * 3):
            size = size_of(case, number % 4)
            rows.append(f"{number / 100},{kind},{number % 4},{size},1,100,200")
            rows.append(f"{number / 100},head,gone,,,,404")
        file = self.directory / f"log-{next(self.numbers)}.csv"
        file.write_text("\n".join(rows))
        return file

    def _job_file(self, case: Case, name: str) -> Path:
        size = "sizes" if ":" in case["size"] else "size"
        stages = [
            {
                "name": "fill", "kind": "prepare", "workload": "write", "number": FUNCTIONS,
                "objects": int(case["objects"]), size: case["size"],
                "compressibility": float(case["compressibility"]),
            },
            {
                "name": "back", "kind": "execute", "workload": "read", "keys": "fill",
                "number": FUNCTIONS, "objects": int(case["objects"]),
                "read-times": int(case["repeats"]),
            },
        ]  # fmt: skip
        if case["split"] != NO:
            # As many functions as read everything once, or half of it.
            stages[1]["split"] = int(case["split"])
        file = self.directory / f"{name}.toml"
        lines = [f'name = "{name}"']
        for stage in stages:
            lines.append("[[stages]]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in stage.items()]
        file.write_text("\n".join(lines) + "\n")
        return file

    def clean(self, path: Path) -> None:
        """Delete the objects of a run, with the command; directly, if the command would wait for
        minutes."""
        run = load_run(path)
        if run.job.control is not None:
            deleted = delete(run.job.target, run.ledger(), workload=run.job.declared)
            control = delete_control(run.job.control, run.run_id)
            assert (deleted.failed, deleted.foreign) == ([], []), deleted
            assert (control.failed, control.foreign) == ([], []), control
            return
        done = command("clean", path)
        assert done.code == 0, done


_FLAGS: Final = {
    "threads": "--threads",
    "connections": "--connections",
    "part": "--part-size",
    "stat": "--stat",
    "sse": "--sse",
    "hedge": "--hedge",
    "rate": "--rate",
    "arrivals": "--arrivals",
    "warm-up": "--warm-up",
    "barrier": "--barrier",
    "memory": "--memory",
    "arch": "--arch",
    "slots": "--slots",
    "progress": "--progress",
}
_DEFAULTS: Final = {
    "threads": ("1",),
    "connections": ("1",),
    "stat": ("key",),
    "arrivals": ("uniform",),
    "warm-up": ("0",),
    "progress": ("auto",),
}


def _if(case: Case, factor: str, default: str, flag: str = "") -> list[str]:
    return [] if case[factor] == default else [flag or f"--{factor}", case[factor]]


def _contention(case: Case) -> list[str]:
    """Return the flags of a pattern; one has no back-off."""
    pattern = case["workload"].removeprefix("conditional ")
    if pattern == "claim":
        return ["--pattern", pattern]
    ends = [] if case["duration"] != NO else ["--operations", "5"]
    return ["--pattern", pattern, *ends, *(["--backoff", "0"] if pattern == "append" else [])]


def _shuffled(case: Case) -> list[str]:
    """Return the flags of a shuffle; workers that are fewer than functions take any first."""
    few = case["executor"] == "workers"
    numbers = ["--mappers", "1" if few else case["objects"], "--reducers", "1" if few else "2"]
    start = "eager" if case["connections"] == "2" else "barrier"
    waits = ["--patience", "2s", "--poll", "20ms"]
    layout = case["workload"].removeprefix("shuffle ")
    return [*numbers, "--partitions", layout, "--reduce", start, *waits]


def prefix_of(case: Case) -> str:
    return LONG if case["prefix"] == "long/" else case["prefix"]


def size_of(case: Case, number: int) -> int:
    if ":" not in case["size"]:
        return parse_size(case["size"])
    low, high = (parse_size(text) for text in case["size"].split(":")[1:])
    return low + (high - low) * (number * 7 % 10) // 10


def command(*arguments: str | Path | int) -> Done:
    """Run ``sbench`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(one) for one in arguments])
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Done(code, out.getvalue(), err.getvalue())


def command_of(case: Case) -> Callable[..., Done]:
    """Return the runner of a case: a separate process if a library has one store per process."""
    alone = case["client"] in ONE_STORE and case["executor"] == "inline"
    return Apart(Path.cwd(), {}) if alone else command


def reproduced(case: Case) -> str:
    """Return a command that repeats a case."""
    return f"python -m tests.combinations {json.dumps(dict(case), ensure_ascii=False)!r}"


def agree(found: Audit) -> None:
    lines = [f"{one.about}: {one.key or ''} {one.text}" for one in found.differences]
    assert not lines, "\n".join(lines[:20])
    assert found.requests["data"], "the store saw nothing"


def cut(path: Path) -> None:
    """Cut the records of a run, as if the driver had been killed at its first outcome."""
    file = path / "records.jsonl"
    lines = file.read_bytes().split(b"\n")
    # A busy driver notes that it is alive before the first outcome.
    first = next(number for number, line in enumerate(lines) if b'"record"' in line)
    kept, following = lines[: first + 1], lines[first + 1]
    file.write_bytes(b"\n".join([*kept, following[: len(following) // 2]]))


def true_report(claims: ReportedRun, report: Mapping[str, Any]) -> None:
    """Compare a report's totals with those of the records, added up one by one."""
    counted = {}
    for function in claims.functions:
        if not function.duplicate:
            counted[function.index] = function
    tried = [op for function in counted.values() for op in function.operations]
    measured = [op for op in tried if not op.get("warmup")]
    good = [op for op in measured if op["error"] is None]
    expected = {
        "requested": claims.job["number"],
        "operations": len(measured),
        "failed_operations": len(measured) - len(good),
        "warmup_operations": len(tried) - len(measured),
        "bytes": sum(op["bytes"] for op in good),
    }
    given = {name: report[name] for name in expected}
    assert given == expected, f"the report says {given}, the records {expected}"
