"""What statistics need, without loading it."""

from importlib import import_module

from serverless_bench.errors import PluginError


def require_scipy() -> None:
    """Check that the library is there, before anything runs for hours.

    Raises
    ------
    PluginError
        If SciPy is not installed.
    """
    try:
        import_module("scipy")
    except ModuleNotFoundError as exc:
        raise PluginError(
            f"comparisons and fits need {exc.name!r}, which is not installed",
            hint="pip install 'serverless-bench[compare]'",
        ) from exc
