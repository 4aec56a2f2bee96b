import pytest

from tests.contract import apart


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return apart.run(pyfuncitem) or None
