"""The reference has every public name, with its example."""

import serverless_bench as sbench
from docs.make_reference import CHAPTERS, made


def test_it_has_every_public_name() -> None:
    names = [name for names in CHAPTERS.values() for name in names]
    assert sorted(names) == [name for name in sbench.__all__ if name != "__version__"]
    page = made()
    assert [name for name in names if page.count(f"\n### {name}\n") != 1] == []
    assert page.count("```pycon\n>>> ") == len(names)
