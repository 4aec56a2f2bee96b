"""The reference page is made of the docstrings that are there, and has every public name."""

import serverless_bench as sbench
from docs.make_reference import CHAPTERS, PAGE, made


def test_it_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == made()


def test_it_has_every_public_name() -> None:
    names = [name for names in CHAPTERS.values() for name in names]
    assert sorted(names) == [name for name in sbench.__all__ if name != "__version__"]
