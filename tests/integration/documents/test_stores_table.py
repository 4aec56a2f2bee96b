"""docs/stores.md says what every server answers to every probe."""

from docs.make_stores import BEGIN, END, PAGE, column, replaced, rows, table
from tests.probes.stores import STORES
from tests.probes.table import GROUPS

KNOWN = {
    (group, what): probe.s3 for group, probes in GROUPS.items() for what, probe in probes.items()
}


def test_every_probe_and_every_server_stands_in_the_table() -> None:
    lines = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].splitlines()
    wanted = [list(row) for row in rows(dict.fromkeys(STORES, KNOWN))]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert found[0] == wanted[0]
    assert [row[:2] for row in found] == [row[:2] for row in wanted]


def test_answers_become_a_table_and_are_read_again() -> None:
    answers = {store: {**KNOWN, ("Keys", "a backslash"): f"{store}'s"} for store in STORES}
    page = replaced(f"a\n{BEGIN}old\n{END}b\n", table(answers))
    assert page.startswith(f"a\n{BEGIN}| request | S3 |")
    assert page.endswith(f"|\n{END}b\n")
    assert {store: column(page, store) for store in STORES} == answers
