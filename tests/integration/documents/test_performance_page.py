"""docs/performance.json and the page made from it: sentences, tables, sections."""

import pytest

from docs.make_performance import (
    UNKNOWN,
    by_client,
    columns,
    fill_in,
    made,
    main,
    recorded,
    rows,
    shortened,
    spread,
    texts,
)

TABLE = """\
| scheme | client | CPU-ms |
| --- | --- | ---: |
| http | wire | 0.125 |
| https | wire | 0.25 |
| https | boto3 | |
"""


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("{http wire|CPU-ms} ms", "0.125 ms"),
        ("{1000/http wire|CPU-ms} a second", "8,000 a second"),
        # The last of the rows that contain the words.
        ("{wire|CPU-ms} and {wire|scheme}", "0.25 and https"),
        ("{boto3|CPU-ms}", UNKNOWN),
        ("{minio|CPU-ms}", UNKNOWN),
        ("{wire|seconds}", UNKNOWN),
        ("nothing of it", "nothing of it"),
    ],
)
def test_a_sentence_takes_its_figures_from_the_table(sentence: str, read: str) -> None:
    assert fill_in(sentence, rows(TABLE)) == read


CLIENTS = """\
| scheme | KiB | operation | client | bare | in the harness | lowest to highest |
| --- | ---: | --- | --- | ---: | ---: | --- |
| http | 4 | put | socket | 0.03 |  | 0.02 to 0.04 |
| http | 4 | put | wire | 0.04 | 0.10 | 0.09 to 0.11 |
| http | 4 | get | wire | 0.05 | 0.20 | 0.10 to 0.30 |
"""


def test_clients_have_a_row_each() -> None:
    assert by_client(CLIENTS) == (
        "| KiB | client | http put | http get |\n"
        "| ---: | --- | ---: | ---: |\n"
        "| 4 | socket | 0.03 |  |\n"
        "| 4 | wire | 0.10 (0.04) | 0.20 (0.05) |\n"
    )
    assert "| client | http put | http get |\n" in shortened(CLIENTS)


def test_the_distance_of_rounds_is_a_share_of_the_figure() -> None:
    assert "differ by 60% " in spread(rows(CLIENTS))
    assert "at most 100%" in spread(rows(CLIENTS))
    assert spread(rows(TABLE)) == ""


def test_columns_of_a_sentence_are_known() -> None:
    assert columns("{http wire|CPU-ms}, {1000/a b|wall s}") == {"CPU-ms", "wall s"}


def test_a_table_has_no_column_that_its_title_tells() -> None:
    table = "| client | KiB | threads |\n| --- | ---: | ---: |\n| a | 4 | 1 |\n| a | 4 | 2 |\n"
    assert shortened(table) == "| client | threads |\n| --- | ---: |\n| a | 1 |\n| a | 2 |\n"
    assert shortened(TABLE) == TABLE


def test_every_table_is_measured() -> None:
    measured, page = recorded().tables, made()
    assert list(measured) == [table.title for table in texts()]
    for table in texts():
        one = measured[table.title]
        assert f"\n## {table.title}\n\n{one.sentence}\n" in page
        assert table.about in page
        assert f"`python -m benchmarks.{table.command.split()[0]}" in one.made
        assert len(one.rows) > 1
        assert UNKNOWN not in one.sentence


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["Nothing"], "no table is called Nothing"),
        (["--smallest"], "--smallest measures nothing: name another file with --into"),
    ],
)
def test_impossible_tables_are_refused(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert text in capsys.readouterr().err
