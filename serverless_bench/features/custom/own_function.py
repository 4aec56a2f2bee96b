"""Loading of a user's function that the command line names."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from serverless_bench.base.errors import UsageError

if TYPE_CHECKING:
    from serverless_bench.features.custom.pickling import OwnFunction


def load_function(text: str) -> "OwnFunction":
    """Execute the file in ``FILE.py:FUNCTION`` and return the function.

    Raises
    ------
    UsageError
        If the file or the function does not exist, or the file cannot be executed.
    """
    name, _, attribute = text.rpartition(":")
    path = Path(name)
    if not name or not attribute.isidentifier() or path.suffix != ".py":
        raise UsageError(f"{text!r} is not FILE.py:FUNCTION")
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    # The file may import modules from its directory, like a script.
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
        problem = " ".join(f"{type(exc).__name__}: {exc}".split())
        raise UsageError(f"{path}{where}: {problem}") from exc
    value = getattr(module, attribute, None)
    if not callable(value):
        raise UsageError(f"{path} has no function {attribute!r}")
    function: OwnFunction = value
    return function
