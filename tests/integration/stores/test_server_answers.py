"""Answers of S3-compatible servers, as in docs/stores.md, requested again."""

import pytest

from docs.make_stores import ask, recorded
from tests.probes.stores import STORES


@pytest.mark.parametrize(
    "store",
    [
        pytest.param(name, marks=pytest.mark.full if store.built else ())
        for name, store in STORES.items()
    ],
)
def test_a_server_answers_as_the_page_says(store: str) -> None:
    """If it is the server that has changed: python docs/make_stores.py NAME."""
    assert ask(store) == recorded()[store]
