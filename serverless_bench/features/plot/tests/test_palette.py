"""Computed requirements: everybody can distinguish the colours, and see them on the background."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from serverless_bench.features.plot.palette import DARK, HUES, LIGHT, Palette
from serverless_bench.job.operations import CONTENDED, READING, OperationKind
from serverless_bench.job.workload import WORKLOADS, Workload, open_workload
from tests.house.members import uses

_FAR = 0.085
"""Distance in OKLab, where 0.02 is about the smallest visible difference."""

# Machado, Oliveira, Fernandes (2009): colours as seen without one kind of cone, in linear RGB.
_EYES = {
    "all": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# Ottosson (2020): from linear RGB to OKLab.
_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

Color = NDArray[np.float64]

PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


def _linear(color: str) -> Color:
    part = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def _seen(color: str, eyes: str) -> Color:
    seen = np.clip(_EYES[eyes] @ _linear(color), 0, 1)
    found: Color = _LAB @ np.cbrt(_LMS @ seen)
    return found


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    light = [float(_linear(color) @ (0.2126, 0.7152, 0.0722)) for color in (one, other)]
    return (max(light) + 0.05) / (min(light) + 0.05)


@PALETTES
@pytest.mark.parametrize("eyes", _EYES)
def test_everybody_tells_the_colours_apart(palette: Palette, eyes: str) -> None:
    colors = {**palette.hues, "failed": palette.failed}
    for one, other in combinations(colors, 2):
        apart = np.linalg.norm(_seen(colors[one], eyes) - _seen(colors[other], eyes))
        assert apart >= _FAR, (one, other)


@PALETTES
def test_lines_and_words_stand_out_from_their_ground(palette: Palette) -> None:
    for color in (*palette.hues.values(), palette.failed):
        assert _contrast(color, palette.surface) >= 3
    assert _contrast(palette.ink, palette.surface) >= 7
    assert _contrast(palette.muted, palette.surface) >= 4.5


@uses("workload read")
@PALETTES
@pytest.mark.parametrize(
    ("one", "other"), [("write", "read"), ("put", "get"), ("get", "get_range")]
)
def test_a_write_and_a_read_differ_in_a_grey_print(palette: Palette, one: str, other: str) -> None:
    grey = [
        _seen(palette.hues[HUES.get(name) or open_workload(name).look.hue], "all")[0]
        for name in (one, other)
    ]
    assert abs(grey[0] - grey[1]) >= 0.1


def test_every_workload_and_every_kind_of_operation_has_a_colour() -> None:
    assert set(OperationKind) == set(HUES)
    # Those without a hue of their own are grey, and in no picture with others.
    hues = [w.look.hue for w in map(open_workload, WORKLOADS) if w.look.hue != Workload.look.hue]
    assert len(set(hues)) == len(hues)
    assert set(hues) <= LIGHT.hues.keys()


def test_kinds_of_one_picture_differ_in_colour() -> None:
    arrays = [kind for kind in OperationKind if kind.endswith("_array")]
    others = [kind for kind in OperationKind if kind not in (*arrays, *CONTENDED)]
    alone = {"call", "list_all", "scan", "wait"}
    shuffled = ([kind, OperationKind.PUT, OperationKind.WAIT] for kind in READING)
    for group in (arrays, CONTENDED, *shuffled, [kind for kind in others if kind not in alone]):
        assert len({HUES[kind] for kind in group}) == len(group)


@uses("feature live")
def test_a_live_view_in_a_notebook_has_the_light_colours() -> None:
    from serverless_bench.features.live.screen import _COLORS

    assert (LIGHT.surface, LIGHT.ink, LIGHT.failed, LIGHT.hues["green"]) == _COLORS
