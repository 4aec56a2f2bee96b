"""A study's page for a browser marks published figures that are in doubt."""

from serverless_bench.features.studies.page import page
from serverless_bench.features.studies.tests.test_pictures import drawn_up


def test_doubtful_figures_have_a_colour_of_their_own() -> None:
    shown = page(drawn_up("small-objects-stores", "small"))
    for words in ("published, in doubt", "42.6 (!)", "Checks of the published rows"):
        assert words in shown
