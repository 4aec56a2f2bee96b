"""docs/stores.md says what every server answers to every probe."""

from docs.make_stores import BEGIN, END, PAGE, column, replaced, rows, table
from tests.probes.stores import STORES
from tests.probes.table import GROUPS

KNOWN = {
    (group, what): probe.s3 for group, probes in GROUPS.items() for what, probe in probes.items()
}


def test_every_probe_and_every_server_stands_on_the_page() -> None:
    page = PAGE.read_text()
    columns = {store: column(page, store) for store in STORES}
    assert {tuple(answers) for answers in columns.values()} == {tuple(KNOWN)}
    assert replaced(page, table(columns)) == page


def test_answers_become_a_table_and_are_read_again() -> None:
    answers = {store: {**KNOWN, ("Keys", "a backslash"): f"{store}'s"} for store in STORES}
    assert [row[0] for row in rows(answers)][-2:] == ["**Keys**", "a backslash"]
    page = replaced(f"a\n{BEGIN}old\n{END}b\n", table(answers))
    assert page.startswith(f"a\n{BEGIN}| request | S3 |")
    assert page.endswith(f"; 1,025 bytes\n{END}b\n")
    assert {store: column(page, store) for store in STORES} == answers
