"""How a run is shown while it is under way: what the user says of it."""

from typing import Literal

Style = Literal["auto", "bar", "plain", "none"]
"""``bar``: the live view, where there is a terminal or a notebook. ``plain``: a line on
standard error every 5 s, and one at the end. ``auto``: the live view, or where there is
none a line every 10 s. ``none``: nothing."""
