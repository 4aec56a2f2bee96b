"""The drawing in CONTRIBUTING.md is that of the imports."""

from tests.house.drawing import DRAWING, drawing
from tests.house.removed import whole


@whole
def test_the_drawing_is_of_the_package_as_it_is() -> None:
    assert DRAWING.read_text("utf-8") == drawing(), "python -m tests.house.drawing"
