from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from docs.make_index import FEATURES
from docs.make_site import complete
from serverless_bench.base.errors import UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.base import ClientInfo
from serverless_bench.clients.options import check, documented, option, parse
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import Shown
from tests.tables import each_row

PAGE = complete(Path(__file__).parents[3] / "docs" / "clients.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeOptions:
    threads: int = option(4, "threads of the pool", least=1)
    part_mb: int | None = option(None, "size of a part")
    rate: float = option(1.5, "bytes per second")
    lazy: bool = option(default=False, about="whether to wait")
    name: str = option("x", "what it is called")
    signing: Literal["sha256", "unsigned"] = option("sha256", "what is signed")


def target(*options: tuple[str, str], client: str = "wire") -> Target:
    return Target(client=client, bucket="b", endpoint_url="http://s", client_option=options)


def test_unset_options_have_their_defaults() -> None:
    assert parse(SomeOptions, target()) == SomeOptions()


@each_row(
    ("name", "text", "value"),
    [
        ("threads", "8", 8),
        ("part_mb", "16", 16),
        ("part_mb", "none", None),
        ("rate", "2.5", 2.5),
        ("lazy", "yes", True),
        ("lazy", "False", False),
        ("name", "a=b", "a=b"),
        ("signing", "unsigned", "unsigned"),
    ],
)
def test_values_get_their_type(name: str, text: str, value: object) -> None:
    assert getattr(parse(SomeOptions, target((name, text))), name) == value


@each_row(
    ("name", "text", "hint"),
    [
        ("threads", "0", "threads is a whole number, at least 1"),
        ("threads", "two", "threads is a whole number, at least 1"),
        ("threads", "none", "threads is a whole number, at least 1"),
        ("rate", "fast", "rate is a number"),
        ("lazy", "perhaps", "lazy is yes or no"),
        ("signing", "md5", "signing is sha256 or unsigned"),
    ],
)
def test_senseless_options_are_refused(name: str, text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"`client_option` {name}={text} ") as caught:
        parse(SomeOptions, target((name, text)))
    assert caught.value.hint == hint


def test_every_option_is_documented_with_its_values_and_default() -> None:
    assert documented(SomeOptions) == {
        "threads": "threads of the pool (a whole number; default 4)",
        "part_mb": "size of a part (a whole number; by default the library's own)",
        "rate": "bytes per second (a number; default 1.5)",
        "lazy": "whether to wait (yes or no; default no)",
        "name": "what it is called (a text; default x)",
        "signing": "what is signed (sha256 or unsigned; default sha256)",
    }


@each_row("client", CLIENTS)
def test_an_unknown_option_names_the_known_ones(client: str) -> None:
    with pytest.raises(UsageError, match=f"client '{client}' has no option 'nope'") as caught:
        check(target(("nope", "1"), client=client))
    known = documented(CLIENTS.load(client).info.options)
    assert caught.value.hint == f"its options are {', '.join(sorted(known))}"


def test_a_wrong_value_is_found_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="payload_signing=md5 is not possible"):
        check(target(("payload_signing", "md5")))


def test_an_option_may_hide_requests() -> None:
    info = ClientInfo(
        attempts="exact",
        attempts_hidden_by=frozenset({"part_mb"}),
        progress="none",
        signing="none",
        checksum="none",
    )
    assert info.with_options([]).attempts == "exact"
    assert info.with_options([("part_mb", "none")]).attempts == "exact"
    assert info.with_options([("part_mb", "16")]).attempts == "hidden"


@each_row("client", CLIENTS)
def test_the_tables_of_clients_say_what_each_declares(client: str) -> None:
    info = CLIENTS.load(client).info
    declared, shown, *_ = (
        [cell.strip() for cell in line.split("|")]
        for line in PAGE.splitlines()
        if line.startswith(f"| `{client}` |")
    )
    assert declared[3].startswith(info.attempts)
    assert ("none" in declared[4]) == (info.progress == "none")
    columns = (Shown.ACKNOWLEDGED, Shown.FIRST_BYTE, Shown.CONTENT_RANGE, Shown.CONNECTION)
    says = [cell.startswith("yes") for cell in shown[2:6]]
    assert says == [column in info.shows for column in columns]


@each_row("client", CLIENTS)
def test_every_option_is_documented(client: str) -> None:
    of_a_feature = FEATURES / client / "README.md"
    if of_a_feature.exists():
        section = complete(of_a_feature)
    else:
        section = PAGE.partition(f"\n## {client}\n")[2].partition("\n## ")[0]
    options = documented(CLIENTS.load(client).info.options)
    missing = [name for name in options if f"`{name}`" not in section]
    assert not missing
