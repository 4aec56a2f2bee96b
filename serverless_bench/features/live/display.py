"""Settings for the display of a run in progress."""

from typing import Literal

Style = Literal["auto", "bar", "plain", "none"]
"""``bar``: the live view in a terminal or a notebook. ``plain``: a line on standard error every
5 s, and a line at the end. ``auto``: the live view if it is possible, otherwise a line every 10 s.
``none``: no display."""
