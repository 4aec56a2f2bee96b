"""The drawings of the pages are those of the scripts."""

from docs import make_overview
from tests.house.drawing import DRAWING, drawing
from tests.house.removed import whole


@whole
def test_the_drawing_is_of_the_package_as_it_is() -> None:
    assert DRAWING.read_text("utf-8") == drawing(), "python -m tests.house.drawing"


def test_the_overview_is_as_drawn() -> None:
    overview = make_overview.DRAWING.read_text("utf-8")
    assert overview == make_overview.drawing(), "python -m docs.make_overview"
