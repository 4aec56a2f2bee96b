"""docs/stores.csv says what every server answers to every probe."""

from docs.make_stores import file_rows, recorded, rows, table
from tests.probes.stores import STORES
from tests.probes.table import GROUPS

KNOWN = {
    (group, what): probe.s3 for group, probes in GROUPS.items() for what, probe in probes.items()
}


def test_every_probe_and_every_server_is_in_the_file() -> None:
    columns = recorded()
    assert list(columns) == list(STORES)
    assert {tuple(answers) for answers in columns.values()} == {tuple(KNOWN)}


def test_a_probe_is_in_the_table_or_in_the_list_below() -> None:
    different, same = table().split("\nAll servers answer as S3 to:\n\n")
    listed = [what for line in same.splitlines() for what in line.partition(": ")[2].split("; ")]
    for _, what in KNOWN:
        assert (f"| {what} |" in different) is not (what in listed)


def test_answers_become_rows() -> None:
    answers = {store: {**KNOWN, ("Keys", "a backslash"): f"{store}'s"} for store in STORES}
    assert [row[0] for row in rows(answers)][-2:] == ["**Keys**", "a backslash"]
    kept = list(file_rows(answers))
    assert kept[0] == ("group", "request", *STORES)
    assert ("Keys", "a backslash", *(f"{store}'s" for store in STORES)) in kept
