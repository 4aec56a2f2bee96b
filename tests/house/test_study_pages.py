"""The page of a study is short: question, verdicts and a picture; the site adds the tables."""

from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "serverless_bench" / "features" / "studies"
PAGES = sorted(STUDIES.glob("results/*.md"))
MOST_WORDS = 300


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_verdicts_a_picture_and_at_most_300_words(page: Path) -> None:
    text = page.read_text()
    assert len(text.split()) <= MOST_WORDS
    assert "\n## Verdicts\n\n- " in text
    assert f"![{page.stem}]({page.stem}.png)" in text
    assert page.with_suffix(".png").exists()


def test_every_study_with_saved_runs_has_a_page() -> None:
    saved = {path.stem for path in STUDIES.glob("results/*.json")}
    assert saved == {page.stem for page in PAGES} <= {path.stem for path in STUDIES.glob("*.toml")}
