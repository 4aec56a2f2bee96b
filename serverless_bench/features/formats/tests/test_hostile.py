"""Files of other tools that are made to consume resources, or to attack a terminal."""

import pickle
import struct
from pathlib import Path

import pytest
import zstandard

from serverless_bench.base.errors import UsageError
from serverless_bench.features.formats.converters import open_converter
from serverless_bench.features.formats.importers import content, read_results
from serverless_bench.features.formats.importers.base import Hints, Imported
from tests.data import oplogs, pickles
from tests.tables import each_row

S = oplogs.S
LOG = oplogs.oplog(
    oplogs.Request(thread=n, start_ns=oplogs.BEGIN + n * S, end_ns=oplogs.BEGIN + n * S + S)
    for n in range(2)
)
HEAD, ROW = LOG.splitlines()[:2]


def imported(folder: Path, data: str | bytes) -> Imported:
    path = folder / "theirs"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_results(path, Hints())


@pytest.mark.parametrize("piece", [b"\n", b"#\n", b"\0"])
def test_a_decompression_bomb(tmp_path: Path, piece: bytes) -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    block = piece * ((1 << 20) // len(piece))
    data = packer.compress(f"{HEAD}\n".encode())
    data += b"".join(packer.compress(block) for _ in range(64)) + packer.flush()
    with pytest.raises(UsageError, match=r"lines are empty|times larger|is invalid"):
        imported(tmp_path, data)


def test_a_pickle_in_a_bomb(tmp_path: Path) -> None:
    data = zstandard.ZstdCompressor().compress(b"\x80\x02(" + bytes(80 << 20))
    with pytest.raises(UsageError, match="decompressed it is more than 100 times larger"):
        imported(tmp_path, data)


@each_row(
    "row",
    [
        ROW.replace("\t0\tGET", f"\t{'9' * 5000}\tGET"),
        ROW.replace("abcd", "ab\x1b[2Jcd"),
        ROW.replace("\tGET\t", f"\t{'G' * 200}\t"),
        ROW.replace("\tGET\t", "\tG\u202eT\t"),
        "x" * 200_000,
    ],
)
def test_forged_lines_of_an_op_log_are_refused(tmp_path: Path, row: str) -> None:
    with pytest.raises(UsageError, match="line 2 is invalid"):
        imported(tmp_path, f"{HEAD}\n{row}\n")


def test_kinds_without_end(tmp_path: Path) -> None:
    rows = "\n".join(ROW.replace("\tGET\t", f"\tKIND{n}\t") for n in range(100))
    with pytest.raises(UsageError, match="line 66 is invalid"):
        imported(tmp_path, f"{HEAD}\n{rows}\n")


def test_unprintable_text_is_left_out_of_an_op_log(tmp_path: Path) -> None:
    row = ROW.replace("http://store:9000", "http://\x1b[2J").replace("prefix/", "\u202e")
    found = imported(tmp_path, f"{HEAD}\n{row}\n")
    assert (found.endpoint_url, found.rows.key) == ("", [""])


def test_unprintable_text_is_left_out_of_a_pickle(tmp_path: Path) -> None:
    data = pickles.lithops(pickles.tuples(2, read=True), keys=2)
    data |= {"bucket_name": "b\x1b]0;x\x07", "keynames": ["a\nb", "k" * 2000]}
    found = imported(tmp_path, pickle.dumps(data))
    assert (found.bucket, found.rows.key) == ("", ["", ""])


def test_a_pickle_that_says_the_same_again_and_again(tmp_path: Path) -> None:
    one = pickles.tuples(1)[0]
    with pytest.raises(UsageError, match="the same result object"):
        imported(tmp_path, pickle.dumps([one] * 1000))


def test_functions_without_end(tmp_path: Path) -> None:
    data = {"results": pickles.tuples(1), "keynames": [None] * 100_001}
    with pytest.raises(UsageError, match="100001 functions, at most 100000"):
        imported(tmp_path, pickle.dumps(data))


@each_row(
    "data",
    [
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"N",
        b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"x.",
        b"\x80\x04\x8e" + struct.pack("<Q", (1 << 64) - 1) + b"x.",
        b"\x80\x02\x8b" + struct.pack("<i", (1 << 31) - 1) + b"x.",
        b"\x80\x02" + b"(" * 2000 + b".",
        b"I" + b"9" * 5000 + b"\n.",
    ],
    ids=["frame", "text", "bytes", "integer", "marks", "digits"],
)
def test_a_pickle_that_promises_more_than_it_has(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError, match="not a complete pickle"):
        imported(tmp_path, data)


def test_instructions_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_INSTRUCTIONS", 1000)
    with pytest.raises(UsageError, match="more than 1000 instructions"):
        content.load_plain(Path("x"), b"N" * 2000)


LAUGHS = "\n".join(
    ["a0: &a0 [x]", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))]
)
MERGES = "\n".join(
    ["a0: &a0 {x: 1}"]
    + [f"a{n}: &a{n}\n  <<: [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
)


@each_row(
    ("text", "says"),
    [
        (LAUGHS, "more than a million values"),
        (MERGES, "more than a million values"),
        ("a: &a [*a]", "are nested more than"),
        ("a: &a {b: *a}", "are nested more than"),
        (f"a: {'[' * 900}", "are nested more than"),
        (f"a: {'9' * 5000}", "a number has 5000 characters"),
        ('a: "\\ud800"', "half of a character"),
        ("a: 2001-99-99", "an invalid value"),
        ("a: !!timestamp x", "an invalid value"),
        ("a: !!bool x", "an invalid value"),
        ("? [a]\n: b", "a key is not a text"),
        ("a" * 40_000, "more than 32 KiB"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
    ],
)
def test_yaml_that_is_made_to_be_hard_to_read(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "theirs.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=says):
        open_converter("sai3")(path, threads=1)
