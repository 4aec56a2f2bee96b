"""Objects with wrong bytes: found from the key file alone, classified, counted."""

import re
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.driver.boto import open_s3
from serverless_bench.job.keys import hash_key
from serverless_bench.job.target import Target
from serverless_bench.payload.keystream import Keystream
from serverless_bench.rundir.record import FoundBytes
from serverless_bench.rundir.run import load_run
from tests.commands.command import Sbench
from tests.stores.servers import Server, credentials

MB = 3
SIZE = MB << 20


def content(key: str, generation: int = 0) -> bytes:
    data = bytearray(SIZE)
    Keystream(key, generation).readinto_at(0, data)
    return bytes(data)


@pytest.mark.parametrize(
    "client",
    [
        # The other clients compare their bytes with the same code.
        pytest.param(client, marks=() if client == "wire" else pytest.mark.full)
        for client in CLIENTS
    ],
)
def test_every_kind_of_damage_is_found_and_named(
    sbench: Sbench, embedded: Server, client: str
) -> None:
    sbench("write", "--number", 9, "--mb", MB, "--key-file", "k")
    keys = (sbench.directory / "k").read_text().split()
    sbench("write", "--number", 1, "--mb", MB, "--key-file", "older")
    (older,) = (sbench.directory / "older").read_text().split()
    flipped, cut, swapped, other, replaced, rewound, zeroed, twice, good = keys

    two_flips = bytearray(content(twice))
    for at in (7, 2_500_000):
        two_flips[at] ^= 0x80
    one_flip = bytearray(content(flipped))
    # Not to zero, which would be classified differently.
    one_flip[1_234_567] ^= 1 if one_flip[1_234_567] != 1 else 2
    damaged: dict[str, bytes] = {
        flipped: bytes(one_flip),
        cut: content(cut)[:-1000],
        swapped: content(other),
        other: content(swapped),
        replaced: content(older),
        rewound: content(rewound, generation=7),
        zeroed: content(zeroed)[: 1 << 20] + bytes(4096) + content(zeroed)[(1 << 20) + 4096 :],
        twice: bytes(two_flips),
    }
    with credentials(embedded.environment):
        s3 = open_s3(Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url))
        for key, data in damaged.items():
            s3.put_object(Bucket=embedded.bucket, Key=key, Body=data)

    # A directory of its own, so that only the key file identifies the objects.
    alone = Sbench(sbench.directory / "alone", sbench.environment)
    alone.directory.mkdir()
    read = alone(
        *("read", "--key-file", "../k", "--format", "json", "--name", "r", "--client", client)
    )
    assert read.code == 7
    report = read.json
    assert (report["ok"], report["failed"], report["corrupt_objects"]) == (1, 8, 8)
    assert report["verified_bytes"] == report["bytes"] == SIZE
    assert good not in {bad["key"] for bad in report["bad_ranges"]}

    found: dict[str, list[dict[str, Any]]] = {}
    for bad in report["bad_ranges"]:
        found.setdefault(bad["key"], []).append(bad)
    expect(found, flipped, FoundBytes.UNKNOWN, 1_234_567, 1)
    expect(found, cut, FoundBytes.MISSING, SIZE - 1000, 1000)
    expect(found, swapped, FoundBytes.OTHER_OBJECT, 0, SIZE, found_key=other, found_offset=0)
    expect(found, other, FoundBytes.OTHER_OBJECT, 0, SIZE, found_key=swapped, found_offset=0)
    stranger = f"{hash_key(older):016x}"
    expect(
        found, replaced, FoundBytes.OTHER_OBJECT, 0, SIZE, found_key=None, found_key_hash=stranger
    )
    expect(found, rewound, FoundBytes.OTHER_GENERATION, 0, SIZE, found_generation=7)
    expect(found, zeroed, FoundBytes.ZEROS, 1 << 20, 4096)
    assert [(b["offset"], b["length"]) for b in found[twice]] == [(7, 1), (2_500_000, 1)]
    assert report["bad_bytes"] > 4 * SIZE * 0.99

    text = alone("report", "sbench-runs/r", "--full").out
    assert f"{flipped}: 1 byte at 1234567 is not what was written" in text
    assert re.search(f"bytes from offset [0-3] of {re.escape(other)}", text)
    run = load_run(Path(alone.directory) / "sbench-runs" / "r")
    assert len(run.bad_ranges["key"]) == 9


def expect(
    found: dict[str, list[dict[str, object]]],
    key: str,
    what: FoundBytes,
    offset: int,
    length: int,
    **more: object,
) -> None:
    (bad,) = found[key]
    assert bad["found"] == what
    # Unrelated bytes are equal once in 256 times, also at the edges of a range.
    assert abs(int(str(bad["offset"])) - offset) <= 3
    assert abs(int(str(bad["length"])) - length) <= 6
    if more.get("found_offset") is not None:
        more["found_offset"] = bad["offset"]
    assert {name: bad[name] for name in more} == more


def test_ranges_find_damage_too(sbench: Sbench, embedded: Server) -> None:
    sbench("write", "--number", 1, "--mb", 16, "--key-file", "k")
    (key,) = (sbench.directory / "k").read_text().split()
    data = bytearray(16 << 20)
    Keystream(key).readinto_at(0, data)
    border = slice((5 << 20) - 8, (5 << 20) + 8)  # of two ranges
    data[border] = bytes(byte ^ 0xFF for byte in data[border])
    data[11 << 20] ^= 1
    with credentials(embedded.environment):
        s3 = open_s3(Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url))
        s3.put_object(Bucket=embedded.bucket, Key=key, Body=bytes(data))
    read = sbench(
        *("read", "--key-file", "k", "--part-size", "5MiB", "--connections", 2, "--format", "json")
    )
    assert read.code == 7
    places = [(bad["offset"], bad["length"]) for bad in read.json["bad_ranges"]]
    assert places == [((5 << 20) - 8, 16), (11 << 20, 1)]
