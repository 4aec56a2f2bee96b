"""Verdicts on real servers agree with the table of their responses, or the page says why not."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from docs.make_stores import recorded as responses
from serverless_bench.features.qualify.guarantees import GUARANTEES
from serverless_bench.features.qualify.tests.servers import SAME, check, recorded, words
from tests.probes.stores import STORES
from tests.probes.table import GROUPS

ROWS: Final[Mapping[str, Sequence[str]]] = {
    "create-put": ["put `If-None-Match: *`, an object there"],
    "replace-put": ["put `If-Match`, another ETag there"],
    "create-multipart": ["complete `If-None-Match: *`, an object there"],
    "delete-if-match": ["delete `If-Match`, another ETag there"],
    "cut-put": ["put cut off before its last byte"],
    "read-if-match": [
        "get `If-Match`, another ETag there",
        "get `If-None-Match`, the ETag there",
    ],
    "list-order": ["order"],
    "list-pages": ["pages of two keys", "`StartAfter` a key that is not there"],
    "ranges": [
        "within the object",
        "the last bytes",
        "the last bytes, more than there are",
        "across the end",
        "beyond the end",
        "of an empty object",
    ],
    "multipart-order": ["complete with parts in the wrong order"],
    "multipart-parts": ["complete with a wrong ETag", "complete with a part that was not sent"],
    "multipart-hidden": ["one under way, in the listing of objects", "abort"],
    "checksum-md5": ["put with a wrong `Content-MD5`"],
    "checksum-header": [
        "put with a wrong `x-amz-checksum-crc32`",
        "put with a wrong `x-amz-checksum-sha256`",
    ],
    "checksum-signature": ["put of another body than was signed"],
    "delete-many": ["delete of many, one missing"],
    "copy": ["copy", "copy of a missing object", "copy `If-Match`, another ETag there"],
    "keys-escaped": ["what URLs and XML escape"],
    "keys-slashes": ["`a` beside `a/b`", "`a//b` beside `a/b`", "`a/` with bytes"],
    "keys-unicode": ["a letter in two normal forms"],
    "keys-long": ["1,024 bytes"],
}
"""Rows of docs/stores.csv about a guarantee."""
EXPLAINED: Final = {
    ("s3s-fs", "create-put"): "unsafe",
    ("s3s-fs", "replace-put"): "unsafe",
    ("s3s-fs", "create-multipart"): "unsafe",
    ("s3s-fs", "checksum-md5"): "unsafe",
    ("s3s-fs", "checksum-header"): "unsafe",
    ("seaweedfs", "create-multipart"): "unsafe",
    ("moto", "create-multipart"): "unsafe",
    ("moto", "replace-put"): "unsafe",
    ("versitygw", "multipart-hidden"): "unsafe",
}
"""Verdicts that the responses to single requests do not show; the page explains each."""
BY_CHANCE: Final = {
    ("moto", "create-put"),
    ("moto", "replace-put"),
    ("rclone", "multipart-race"),
    ("rclone", "read-whole"),
    ("s3s-fs", "lost-complete"),
    ("s3s-fs", "read-whole"),
}
"""Guarantees that a server breaks in some runs only."""


def as_good(response: str, s3: str) -> bool:
    """Tell whether a response is right: that of S3, or another rejection."""
    return response == s3 or (s3.startswith("4") and response[:1] in {"4", "5"})


@pytest.mark.parametrize("store", STORES)
def test_verdicts_agree_with_the_responses_to_single_requests(store: str) -> None:
    answered, verdicts = responses()[store], recorded()[store]
    s3 = {what: probe.s3 for probes in GROUPS.values() for what, probe in probes.items()}
    given = {what: text for (_, what), text in answered.items()}
    for guarantee, rows in ROWS.items():
        is_right = all(as_good(given[what], s3[what]) for what in rows)
        if (store, guarantee) in EXPLAINED:
            assert is_right
            assert verdicts[guarantee] == EXPLAINED[store, guarantee]
        else:
            assert (verdicts[guarantee] == SAME) is is_right, guarantee


def test_the_table_has_the_guarantees() -> None:
    assert set(recorded()) == set(STORES)
    assert all(column.keys() == {one.name for one in GUARANTEES} for column in recorded().values())
    assert all(verdict for column in recorded().values() for verdict in column.values())


@pytest.mark.full
@pytest.mark.parametrize("store", STORES)
def test_servers_have_the_verdicts_of_the_table(store: str, tmp_path: Path) -> None:
    with STORES[store].start(tmp_path) as server:
        found = words(check(server))
    table = recorded()[store]
    different = {name for name in table if found[name] != table[name]}
    assert different <= {name for server, name in BY_CHANCE if server == store}, [
        (name, found[name], table[name]) for name in different
    ]
