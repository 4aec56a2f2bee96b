"""An experiment's page for a browser tells published figures that are in doubt from others."""

import sys

import pytest

from serverless_bench.studies.page import page
from tests.commands.command import Call
from tests.unit.studies.test_pictures import drawn_up

PAGES = ("serverless_bench.reporters.html", "serverless_bench.reporters.page")


def test_what_is_in_doubt_has_a_colour_of_its_own() -> None:
    shown = page(drawn_up("small-objects-stores", "small"))
    for words in ("published, in doubt", "42.6 (!)", "Checks of the published rows"):
        assert words in shown


def test_a_missing_library_is_named_before_anything_runs(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(PAGES)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, out, err = call("exp", "run", "--format", "html")
    assert (code, out) == (3, "")
    assert "pip install 'serverless-bench[html]'" in err
