"""A function of the user's own, as the command line names it."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from serverless_bench.errors import UsageError

if TYPE_CHECKING:
    from serverless_bench.driver.pickling import OwnFunction


def load_function(text: str) -> "OwnFunction":
    """Return the function that ``FILE.py:FUNCTION`` names; the file is run for it.

    Raises
    ------
    UsageError
        If there is no such file or function, or the file cannot be run.
    """
    name, _, attribute = text.rpartition(":")
    path = Path(name)
    if not name or not attribute.isidentifier() or path.suffix != ".py":
        raise UsageError(f"{text!r} is not FILE.py:FUNCTION")
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    # As for a script: what lies beside it can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    module_name = path.stem if path.stem not in sys.modules else f"own_{path.stem}"
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = sys.modules[module_name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as exc:
        frames = extract_tb(exc.__traceback__)
        lines = [f.lineno for f in frames if Path(f.filename).name == path.name]
        where = f", line {lines[-1]}" if lines else ""
        why = " ".join(f"{type(exc).__name__}: {exc}".split())
        raise UsageError(f"{path}{where}: {why}") from exc
    found = getattr(module, attribute, None)
    if not callable(found):
        raise UsageError(f"{path} has no function {attribute!r}")
    own: OwnFunction = found
    return own
