from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.features.remote.claims import (
    RecordKey,
    before,
    claim_name,
    for_run,
    parse_claim,
    parse_record,
    record_name,
)
from serverless_bench.job.target import Target
from tests.tables import each_row

INDEXES = st.integers(0, 10**8 - 1)
KEYS = st.builds(
    RecordKey,
    INDEXES,
    st.integers(0, 99),
    st.binary(min_size=16, max_size=16).map(bytes.hex),
)


def in_folder(key: RecordKey) -> str:
    return record_name(key).removeprefix("records/")


@given(KEYS)
def test_a_record_is_known_by_its_name(key: RecordKey) -> None:
    assert parse_record(in_folder(key)) == key


@given(INDEXES, st.integers(0, 99))
def test_a_claim_is_known_by_its_name(index: int, launch: int) -> None:
    name = claim_name(index, launch).removeprefix("claims/")
    assert parse_claim(name) == (index, launch)
    assert parse_record(name) is None


@each_row(
    "name",
    [
        "",
        "notes.txt",
        "1/0/" + "a" * 32,
        "00000001/0/" + "A" * 32,
        "00000001/0/" + "a" * 31,
        "00000001/-1/" + "a" * 32,
        "00000001/0/" + "a" * 32 + "/more",
        "00000001/0/" + "a" * 32 + "\n",
    ],
)
def test_a_foreign_name_is_no_record(name: str) -> None:
    assert parse_record(name) is None
    assert parse_claim(name) is None


@given(KEYS, KEYS)
def test_a_listing_is_in_the_order_of_the_indexes(one: RecordKey, other: RecordKey) -> None:
    if one.index != other.index:
        assert (in_folder(one) < in_folder(other)) == (one.index < other.index)


@given(KEYS, INDEXES)
def test_a_listing_may_start_at_any_index(key: RecordKey, index: int) -> None:
    # Stores list the keys of a folder in the order of their bytes.
    assert (in_folder(key).encode() > before(index).encode()) == (key.index >= index)


def test_a_run_has_a_prefix_of_its_own() -> None:
    control = Target(client="boto3", bucket="b", prefix="control/", endpoint_url="http://s")
    mine = for_run(control, "one")
    assert (mine.prefix, mine.bucket, mine.client) == ("control/one/", "b", "wire")
