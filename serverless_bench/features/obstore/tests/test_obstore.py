"""obstore's errors for other clouds."""

import pytest

from serverless_bench.base.errors import AccessDenied, NotFound, ServerFault, Throttled
from serverless_bench.features.obstore.client import error_of


@pytest.mark.parametrize(
    ("code", "error"), [(404, NotFound), (403, AccessDenied), (500, ServerFault), (503, Throttled)]
)
def test_one_of_several_deletions_has_a_status(code: int, error: type[Exception]) -> None:
    text = f"Bulk delete request failed for key k: Because. (code: {code})\n\nDebug source:\nX"
    assert isinstance(error_of(text), error)
