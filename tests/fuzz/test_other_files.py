"""Damaged files of other users, except run directories, with the command that reads them.

Job files, ``sbench.toml``, studies and their plans, prices, configurations and op-logs of
warp and sai3-bench, pickles of PyWren and Lithops, recorded runs of a history.
"""

import json
import os
import pickle
import pickletools
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serverless_bench.cli.main import place_of
from serverless_bench.features.cost.prices import price_text
from serverless_bench.features.history.recorded import record
from serverless_bench.features.studies import STATE
from serverless_bench.features.studies.loading import load_study
from serverless_bench.features.studies.plan import FILE, Plan, save_plan
from serverless_bench.rundir.run import load_run
from tests.data import oplogs, pickles
from tests.fuzz.mutations import CASES, CONTROL, mutated, mutated_bytes
from tests.fuzz.watched import Nursery, nursery

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
RECORDED: Final = Path(__file__).parents[1] / "recorded" / "write"
SAFE: Final = (0, 2, 3, 6, 8, 11)
"""Allowed exit codes for these files: a result, or one line that names the problem."""
S: Final = oplogs.S
LOG: Final = oplogs.oplog(
    [
        oplogs.Request(
            thread=n % 3,
            op=op,
            start_ns=oplogs.BEGIN + n * S,
            end_ns=oplogs.BEGIN + n * S + S // 2,
            first_byte_ns=oplogs.BEGIN + n * S + S // 4 if op == "GET" else None,
            error="" if n % 5 else "503 Slow Down",
        )
        for n, op in enumerate(["PUT", "GET", "STAT", "DELETE", "LIST", "MULTIPART"] * 2)
    ]
)
OLD_LOG: Final = oplogs.oplog(
    (oplogs.Request(start_ns=oplogs.BEGIN + n, end_ns=oplogs.BEGIN + n + S) for n in range(4)),
    oplogs.SAI3,
)
CELLS: Final = st.one_of(
    st.sampled_from([*CONTROL, "", "-1", "9" * 30, "9" * 5000, "x" * 70_000, '"', "=1+1", "nan"]),
    st.sampled_from(["2023-11-14T22:13:20Z", "9999-12-31T23:59:59.999999999Z", "0000-00-00T00:00"]),
    st.sampled_from(["2023-11-14T22:13:20.5+99:99", "GET", "PUT", "idx", "start", "bytes", "#"]),
    st.integers().map(str),
    st.text(max_size=12),
)
SAI3_YAML: Final = {
    "target": "s3://host:9000/bucket/prefix/",
    "duration": "90s",
    "concurrency": 32,
    "workload": [
        {"op": "get", "path": "a/*", "weight": 70},
        {"op": "stat", "path": "a/", "weight": 30},
    ],
    "range_engine": {"enabled": True, "chunk_size": 8388608, "max_concurrent_ranges": 4},
}
JOB: Final = {
    "name": "job",
    "target": {
        "bucket": "b",
        "endpoint-url": "http://127.0.0.1:9",
        "prefix": "p/",
        "client": "wire",
    },
    "run": {"concurrency": 2, "deadline": 60.0, "prices": "prices.toml", "seed": 3},
    "stages": [
        {"name": "a", "kind": "prepare", "workload": "write", "sizes": "uniform:1KiB:1MiB"},
        {
            "name": "b",
            "kind": "execute",
            "workload": "read",
            "key-file": "keys.txt",
            "barrier": 0.5,
        },
        {
            "name": "c",
            "kind": "execute",
            "workload": "array",
            "operation": "write",
            "shape": "64,64",
            "chunks": "32,32",
            "library": "zarr",
        },
    ],
}
SETTINGS: Final = {
    "run-dir": "runs",
    "verify": "full",
    "retries": 2,
    "prices": "prices.toml",
    "max-cost": 10.0,
    "write": {"mb": 4, "number": 2, "client-option": ["a=b"], "prefix": "p/"},
    "mixed": {"mix": "get=1,put=1", "rate": 10.0},
}


def toml(value: object) -> str:
    """Return any value as TOML, also if TOML does not support it."""
    match value:
        case dict():
            return f"{{{', '.join(f'{toml(str(k))} = {toml(v)}' for k, v in value.items())}}}"
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case str():
            plain = (one if one.isalnum() else f"\\U{ord(one):08x}" for one in value)
            return f'"{"".join(plain)}"'
        case bool():
            return str(value).lower()
        case int():
            return hex(value) if value > 2**64 else str(value)
        case _:
            return str(value)


def toml_file(document: object) -> bytes:
    if not isinstance(document, dict):
        return toml(document).encode()
    return "".join(f"{toml(str(k))} = {toml(v)}\n" for k, v in document.items()).encode()


def spoiled(text: str, written: Callable[[object], bytes]) -> st.SearchStrategy[bytes]:
    """Draw a TOML file with spoiled values, or with spoiled bytes."""
    document = tomllib.loads(text)
    data = text.encode()
    return st.one_of(mutated(document).map(written), mutated_bytes(data))


def configuration(document: Mapping[str, Any]) -> st.SearchStrategy[bytes]:
    """Draw a YAML file; JSON is YAML."""
    whole = json.dumps(document)
    lines = whole.replace(", ", ",\n ").encode()
    return st.one_of(mutated(document).map(json.dumps).map(str.encode), mutated_bytes(lines))


@st.composite
def log(draw: st.DrawFn) -> bytes:
    """Draw an op-log with spoiled cells, lines or bytes, perhaps compressed."""
    rows = [line.split("\t") for line in draw(st.sampled_from([LOG, OLD_LOG])).splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.sampled_from(rows))
        at = draw(st.integers(0, len(row) - 1))
        match draw(st.sampled_from(["cell", "cell", "cell", "cell", "cut", "double"])):
            case "cell":
                row[at] = draw(CELLS)
            case "cut":
                del row[at]
            case _:
                rows.insert(draw(st.integers(0, len(rows))), row)
        rows = [row for row in rows if row] or [[""]]
    data = "\n".join("\t".join(row) for row in rows).encode(errors="surrogatepass")
    data = draw(mutated_bytes(data, likely=False))
    if draw(st.integers(0, 3)):
        return data
    return draw(mutated_bytes(zstandard.ZstdCompressor().compress(data), likely=False))


@st.composite
def pickled(draw: st.DrawFn) -> bytes:
    """Draw a pickle of results with spoiled values, instructions or bytes."""
    timed = pickles.tuples(3, read=draw(st.booleans()))
    whole = draw(st.sampled_from([{"results": timed}, pickles.lithops(timed, keys=4)]))
    document: Any = json.loads(json.dumps(whole))
    if draw(st.booleans()):
        document = draw(mutated(document))
    data = pickle.dumps(document, draw(st.integers(0, 5)))
    if draw(st.booleans()):
        return draw(mutated_bytes(data))
    if draw(st.integers(0, 2)):
        return data
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        code = draw(st.sampled_from(pickletools.opcodes)).code.encode("latin1")
        at = draw(st.integers(0, len(changed)))
        changed[at:at] = code + draw(st.one_of(st.binary(max_size=9), st.just(b"\xff" * 8)))
    return bytes(changed)


@st.composite
def plan(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draw the two files of an unfinished study, one of them damaged."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        study = load_study("s3-client-threads")
        save_plan(Plan(study=study, scale="small", repeats=2), root)
        state, text = (root / STATE).read_bytes(), (root / FILE).read_text()
    if draw(st.integers(0, 3)):
        state = draw(
            st.one_of(
                mutated(json.loads(state)).map(json.dumps).map(str.encode), mutated_bytes(state)
            )
        )
        return state, text.encode()
    return state, draw(spoiled(text, toml_file))


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    names = ("run", "convert", "import", "plan", "history", "write", "read", "mixed")
    commands = [place_of(name).partition(":")[0] for name in names]
    with nursery(*commands, *WARM) as found:
        yield found


WARM: Final = (
    "serverless_bench.metrics.summary",
    "serverless_bench.features.cost.outlook_text",
    "serverless_bench.features.stages.prepared",
    "serverless_bench.features.studies.commands.study",
    "serverless_bench.features.studies.report",
    "serverless_bench.features.studies.runner",
    "serverless_bench.features.studies.observations",
    "serverless_bench.features.formats.converters.sai3",
    "serverless_bench.features.formats.importers.lithops",
    "serverless_bench.features.formats.importers.pywren",
    "serverless_bench.features.formats.importing",
    "serverless_bench.features.formats.importers.sai3",
    "serverless_bench.features.formats.importers.warp",
    "serverless_bench.features.history.showing",
    "serverless_bench.report.text",
    "rich.table",
    "scipy.stats",
    "yaml",
    "zstandard",
)
"""Modules that commands import when they run; importing them again in a child takes seconds."""


def answers(
    sbench: Nursery, files: Mapping[str, bytes], *arguments: str, codes: tuple[int, ...] = SAFE
) -> None:
    """Run a command with these files, and check that it answers like a command."""
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        for name, data in files.items():
            (here / name).parent.mkdir(exist_ok=True, parents=True)
            (here / name).write_bytes(data)
        ended = sbench(here, *arguments)
        ended.check(*codes)
        assert not ended.asked, ended
        assert all(one.isprintable() for one in ended.out + ended.err if one != "\n"), ended
        output = [line for line in ended.err.splitlines() if not line.startswith("note: ")]
    assert ended.code != 2 or len(output) <= 2, ended


STAGES: Final = (EXAMPLES / "stages.toml").read_text(encoding="utf-8")
STUDY: Final = load_study("s3-client-threads").text
# In CI a third of the usual number, as there are nine kinds.
fuzzed = settings(
    max_examples=CASES if CASES > 100 else max(1, CASES // 3),
    suppress_health_check=[*HealthCheck],
)


@fuzzed
@given(st.one_of(spoiled(STAGES, toml_file), mutated(JOB).map(toml_file)))
def test_job_files(sbench: Nursery, data: bytes) -> None:
    files = {"job.toml": data, "keys.txt": b"a\n", "prices.toml": price_text().encode()}
    answers(sbench, files, "run", "job.toml", "--dry-run")


@fuzzed
@given(
    st.one_of(mutated(SETTINGS).map(toml_file), mutated_bytes(toml_file(SETTINGS))),
    st.sampled_from([(), ("--config", "sbench.toml")]),
)
def test_defaults(sbench: Nursery, data: bytes, named: tuple[str, ...]) -> None:
    files = {"sbench.toml": data, "prices.toml": price_text().encode(), "job.toml": STAGES.encode()}
    answers(sbench, files, *named, "run", "job.toml", "--dry-run")


@fuzzed
@given(spoiled(STUDY, toml_file), st.sampled_from([(), ("--reference", "--format", "markdown")]))
def test_experiments(sbench: Nursery, data: bytes, flags: tuple[str, ...]) -> None:
    answers(sbench, {"my.toml": data}, "study", "show", "my.toml", *flags)


@fuzzed
@given(plan())
def test_plans_of_studies(sbench: Nursery, files: tuple[bytes, bytes]) -> None:
    state, text = files
    answers(sbench, {f"root/{STATE}": state, f"root/{FILE}": text}, "study", "report", "root")


@fuzzed
@given(spoiled(price_text(), toml_file))
def test_prices(sbench: Nursery, data: bytes) -> None:
    answers(sbench, {"prices.toml": data}, "plan", "--prices", "prices.toml", "write")


@fuzzed
@given(configuration(SAI3_YAML))
def test_configurations(sbench: Nursery, data: bytes) -> None:
    answers(sbench, {"theirs.yaml": data}, "convert", "theirs.yaml")


@fuzzed
@given(log(), st.sampled_from([(), ("--from", "warp"), ("--from", "sai3")]))
def test_op_logs(sbench: Nursery, data: bytes, flags: tuple[str, ...]) -> None:
    answers(sbench, {"theirs.csv": data}, "import", "theirs.csv", *flags)


@fuzzed
@given(pickled(), st.sampled_from([(), ("--from", "lithops"), ("--size", "1MiB")]))
def test_pickles(sbench: Nursery, data: bytes, flags: tuple[str, ...]) -> None:
    answers(sbench, {"theirs.pickle": data}, "import", "theirs.pickle", *flags)


@st.composite
def history(draw: st.DrawFn) -> dict[str, bytes]:
    """Draw a run, and the files of a history of the seven days before it, one of them damaged."""
    files = {f"run/{path.name}": path.read_bytes() for path in RECORDED.iterdir()}
    run = record(load_run(RECORDED))
    for day in range(1, 8):
        when = run.created_ns - day * 24 * 3600 * S
        one = msgspec.structs.replace(run, run_id=f"{day}", created_ns=when)
        files[f"kept/{one.key}/{one.file_name}"] = one.to_text().encode()
    document = json.loads(files[f"kept/{one.key}/{one.file_name}"])
    spoiled = st.one_of(
        mutated(document).map(json.dumps).map(str.encode),
        mutated_bytes(json.dumps(document).encode()),
    )
    files[f"kept/{one.key}/{one.file_name}"] = draw(spoiled)
    return files


@fuzzed
@given(history(), st.sampled_from([("show",), ("show", "write"), ("check", "run")]))
def test_histories(sbench: Nursery, files: Mapping[str, bytes], arguments: tuple[str, ...]) -> None:
    answers(sbench, files, "history", *arguments, "--history", "kept", codes=(0, 2, 8, 9, 10))


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("f", ("run", "f", "--dry-run")),
        ("f", ("convert", "f")),
        ("f", ("import", "f")),
        ("f", ("plan", "--prices", "f", "write")),
        ("f", ("plan", "--show-prices", "--prices", "f")),
        ("f", ("ab", "f", "f")),
        ("f", ("read", "--key-file", "f", "--bucket", "b")),
        ("f.toml", ("study", "show", "f.toml")),
        ("sbench.toml", ("ls",)),
        ("sbench.toml", ("--config", "sbench.toml", "ls")),
    ],
)
def test_no_command_hangs_on_a_non_file(
    sbench: Nursery, tmp_path: Path, kind: str, name: str, arguments: tuple[str, ...]
) -> None:
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    ended = sbench(tmp_path, *arguments)
    ended.check(2)
    assert "it is not a regular file" in ended.err


def test_names_with_control_characters_are_refused(sbench: Nursery, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG, encoding="utf-8")
    for name in ("a\x1b[2J", "\u202e", "..", "a\nb"):
        ended = sbench(tmp_path, "import", "log", "--name", name)
        ended.check(2)
        assert "name" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
