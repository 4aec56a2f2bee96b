"""The package stays within its budgets: a change that needs more pays for it elsewhere."""

import tomllib
from pathlib import Path
from typing import Any, Final

from tests.house.features import statements
from tests.house.measures import measures, overused_words
from tests.house.removed import whole
from tests.house.walk import WRITE, files_of
from tests.stores.servers import Server

BUDGETS: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("ceilings.toml").read_text("utf-8")
)


_FILES: Final = "files_of_a_write"
"""This measure takes a run of the command, and a store."""


@whole
def test_no_measure_is_above_its_ceiling() -> None:
    measured = measures()
    assert {*measured, _FILES} == BUDGETS.keys()
    above = {
        name: (value, BUDGETS[name]["ceiling"])
        for name, value in measured.items()
        if value > BUDGETS[name]["ceiling"]
    }
    assert not above, f"make something else smaller; overused words: {overused_words()}"


def test_a_write_executes_code_of_few_files(tmp_path: Path, embedded: Server) -> None:
    found = files_of(WRITE, tmp_path, embedded.environment)
    assert len(found) <= BUDGETS[_FILES]["ceiling"], found


@whole
def test_no_feature_is_above_its_ceiling() -> None:
    ceilings = tomllib.loads(Path(__file__).with_name("features.toml").read_text("utf-8"))
    counts = statements()
    assert {*ceilings} == {*counts}, "features.toml has a line for each feature"
    above = {name: (n, ceilings[name]) for name, n in counts.items() if n > ceilings[name]}
    assert not above, "make something else of the feature smaller"


def test_no_ceiling_is_below_its_aim() -> None:
    assert all(budget["aim"] <= budget["ceiling"] for budget in BUDGETS.values())


def test_at_most_sixty_nouns_may_stand_more_often_than_elsewhere() -> None:
    peers = tomllib.loads(Path(__file__).with_name("peers.toml").read_text("utf-8"))
    assert len(peers["nouns"]) <= 60
