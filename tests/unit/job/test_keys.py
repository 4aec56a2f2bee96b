import errno
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.job.keys import (
    MAX_PREFIX_BYTES,
    check_key,
    check_prefix,
    check_ratios,
    declared_ratios,
    declared_size,
    object_key,
    parent_key,
    parse_layout,
    read_key_file,
)
from serverless_bench.rundir.files import write_key_file
from tests.house.members import uses
from tests.tables import each_row

LAYOUTS = ["random", "sequential", "sharded:1", "sharded:16", "sharded:1000", "sharded:65536"]


def key_of(index: int = 0, number: int = 0, launch: int = 0, layout: str = "random") -> str:
    return object_key(
        prefix="p/",
        run_id="r",
        index=index,
        launch=launch,
        number=number,
        size=5,
        layout=layout,
    )


HEX = "0123456789abcdef"
PREFIXES = st.one_of(
    st.text(max_size=20),
    # Text that looks like the key's own parts, directly before them.
    st.text(alphabet=HEX + "./zd", max_size=60),
    st.sampled_from(["", "a/", "bench-", "x." + "0" * 31, "f" * 32, f"{'e' * 32}.5", "9.z200"]),
)


@given(st.integers(1, 10**15), PREFIXES, st.integers(0, 10**6), st.integers(0, 9))
def test_a_key_gives_its_size_back(size: int, prefix: str, index: int, launch: int) -> None:
    key = object_key(prefix=prefix, run_id="r", index=index, launch=launch, number=0, size=size)
    assert declared_size(key) == size
    assert declared_ratios(key) is None


# Frozen: a ledger or a key file of any released version names objects by these.
GOLDEN = [
    ("random", "p/f40daa9646bda3f5781567f7b1aae957.5"),
    ("sequential", "p/bc005edd62270000000700010000012c.5"),
    ("sharded:1", "p/00/f40daa9646bda3f5781567f7b1aae957.5"),
    ("sharded:300", "p/11f/f40daa9646bda3f5781567f7b1aae957.5"),
    ("sharded:65536", "p/e957/f40daa9646bda3f5781567f7b1aae957.5"),
]


@each_row(("layout", "key"), GOLDEN)
def test_keys_are_frozen(layout: str, key: str) -> None:
    assert key_of(7, 300, 1, layout) == key


@given(
    st.integers(1, 10**15),
    st.sampled_from(LAYOUTS),
    st.floats(1, 50),
    st.floats(1, 100),
    st.integers(0, 10**6),
    PREFIXES,
)
def test_a_key_gives_its_ratios_back(
    size: int, layout: str, compressibility: float, duplication: float, number: int, prefix: str
) -> None:
    key = object_key(
        prefix=prefix,
        run_id="r",
        index=3,
        launch=1,
        number=number,
        size=size,
        layout=layout,
        compressibility=compressibility,
        duplication=duplication,
    )
    assert declared_size(key) == size
    ratios = (round(compressibility * 100), round(duplication * 100))
    assert declared_ratios(key) == (None if ratios == (100, 100) else ratios)


@each_row(
    ("compressibility", "duplication", "suffix"),
    [
        (1, 1, ""),
        (2, 1, ".z200"),
        (1, 4, ".d400"),
        (1.5, 2.25, ".z150d225"),
        (50, 100, ".z5000d10000"),
    ],
)
def test_ratios_stand_at_the_end(compressibility: float, duplication: float, suffix: str) -> None:
    key = object_key(
        prefix="",
        run_id="r",
        index=0,
        launch=0,
        number=0,
        size=9,
        compressibility=compressibility,
        duplication=duplication,
    )
    assert key[32:] == f".9{suffix}"


@each_row(
    ("compressibility", "duplication"), [(0.99, 1), (50.1, 1), (1, 0), (1, 101), (float("nan"), 1)]
)
def test_a_ratio_out_of_bounds_is_refused(compressibility: float, duplication: float) -> None:
    with pytest.raises(UsageError, match="must be between 1 and"):
        check_ratios(compressibility, duplication)


@each_row("layout", LAYOUTS)
def test_no_two_objects_share_a_key(layout: str) -> None:
    keys = [
        key_of(index, number, launch, layout)
        for index in range(20)
        for launch in range(3)
        for number in range(20)
    ]
    assert len(set(keys)) == len(keys)


def test_sequential_keys_sort_as_they_are_made() -> None:
    keys = [key_of(index, number, 0, "sequential") for index in (0, 9, 300) for number in (0, 99)]
    assert keys == sorted(keys)
    assert len({key[:14] for key in keys}) == 1


@each_row(("count", "width"), [(1, 2), (16, 2), (256, 2), (257, 3), (65536, 4)])
def test_shards_are_all_used(count: int, width: int) -> None:
    keys = [key_of(0, number, 0, f"sharded:{count}") for number in range(2000)]
    folders = {key.split("/")[1] for key in keys}
    assert {len(folder) for folder in folders} == {width}
    assert max(int(folder, 16) for folder in folders) < count
    assert len(folders) >= min(count, 1000)


@each_row(
    "text",
    ["", "sorted", "sharded", "sharded:", "sharded:0", "sharded:65537", "sharded:-1", "sharded:x"],
)
def test_invalid_layouts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a layout"):
        parse_layout(text)


@each_row(
    "suffix", [".", ".x200", ".z", ".z99", ".z0200", ".d1", ".d200z200", ".z200.d200", ".z200d"]
)
def test_another_ending_is_foreign(suffix: str) -> None:
    key = "f" * 32 + ".5" + suffix
    assert declared_size(key) is None
    assert declared_ratios(key) is None


@each_row(
    "key",
    ["report.pdf", "a/b.12", "0123.5", "f" * 32, "f" * 32 + ".", "f" * 32 + ".0", "F" * 32 + ".5"],
)
def test_a_foreign_key_declares_no_size(key: str) -> None:
    assert declared_size(key) is None


@given(PREFIXES)
def test_a_key_of_an_array_is_found_in_those_of_its_objects(prefix: str) -> None:
    key = object_key(prefix=prefix, run_id="r", index=0, launch=0, number=0, size=64)
    for name in (".zarray", "0.0", "c/0/0", "s0/zarr.json", "s1/0/0"):
        assert parent_key(f"{key}/{name}") == key
        assert declared_size(f"{key}/{name}") is None


@uses("workload array")
@given(PREFIXES)
def test_a_smaller_level_of_an_image_is_known_by_its_key(prefix: str) -> None:
    from serverless_bench.features.array.load import is_smaller_level

    key = object_key(prefix=prefix, run_id="r", index=0, launch=0, number=0, size=64)
    assert is_smaller_level(f"{key}/s1/0/0")
    assert not is_smaller_level(f"{key}/s0/0/0")


@each_row(
    "prefix",
    ["", "a/", "bench-", "cafe", ".", "a/.b", "..x", "a b+%41&/", "\u00fcber/\u4e2d", "p" * 900],
)
def test_a_prefix_that_works(prefix: str) -> None:
    check_prefix(prefix)


@each_row(
    ("prefix", "words"),
    [
        ("/", "segment"),
        ("/a/", "segment"),
        ("a//b", "segment"),
        ("a//", "segment"),
        ("./a", "segment"),
        ("a/../b", "segment"),
        ("a\nb/", "printed"),
        ("a\x00", "printed"),
        ("a\x7f", "printed"),
        ("\udcff", "printed"),
        ("p" * 901, "901 bytes"),
        ("\u00fc" * 451, "902 bytes"),
    ],
)
def test_a_prefix_that_is_refused(prefix: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_prefix(prefix)


def test_the_longest_prefix_leaves_room_for_the_longest_key() -> None:
    prefix = "p" * MAX_PREFIX_BYTES
    key = object_key(
        prefix=prefix,
        run_id="r",
        index=0,
        launch=0,
        number=0,
        size=10**16 - 1,
        layout="sharded:65536",
        compressibility=50,
        duplication=100,
    )
    assert declared_size(key) == 10**16 - 1
    check_key(key)


@each_row("key", ["", "a\nb", "\udcff", "k" * 1025, "\u00fc" * 513])
def test_invalid_keys_are_refused(key: str) -> None:
    with pytest.raises(UsageError, match="is not an object key"):
        check_key(key)


def test_a_key_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("before\n")

    def keys() -> Iterator[str]:
        yield "a"
        raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(OSError, match="no space"):
        write_key_file(path, keys())
    # A short write of a full disk: no file may have more than one byte.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            write_key_file(path, ["after"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before\n"]


def test_a_key_file_has_one_key_per_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    write_key_file(path, ["a/1", "b 2"])
    assert path.read_text() == "a/1\nb 2\n"
    assert read_key_file(path) == ["a/1", "b 2"]


def test_a_key_file_from_windows_works(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes(b"a\r\nb\r\n")
    assert read_key_file(path) == ["a", "b"]


@each_row(
    ("data", "words"),
    [
        (b"", "has no keys"),
        (b"\n\n", "has no keys"),
        (b"\x80\x04\x95pickle", "not text"),
        (b"good\nba\x00d\n", "line 2"),
        (b"x" * 1025, "line 1"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=words):
        read_key_file(path)


def test_a_missing_key_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the key file"):
        read_key_file(tmp_path / "none")
