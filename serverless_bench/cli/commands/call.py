"""``sbench call``."""

import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.cli.flags.of_jobs import job_options
from serverless_bench.cli.job import prepare, run
from serverless_bench.errors import UsageError
from serverless_bench.job.workload import OWN_FUNCTION

if TYPE_CHECKING:
    from serverless_bench.driver.pickling import OwnFunction


@click.command("call")
@click.argument("own", metavar="FILE.py:FUNCTION")
@job_options(
    OWN_FUNCTION,
    objects="Per function: new, and given.",
    mb="Size of a new object in MiB; without a size none may be made.",
    size="Size of a new object with its unit, as in 2GB or 64MiB.",
    prefix="Goes before every key.",
    key_file="Deal out the objects listed here, one key per line.",
)
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Call a function of your own in many functions, and report what it did.

    It gets the client, the bytes of objects and the recorder as its one argument;
    docs/own-function.md says how. It is sent by value, and runs with the rights of the
    functions: on AWS only where the stack was deployed with AllowCode=true.
    """
    return run(prepare(OWN_FUNCTION, with_code(flags)))


def with_code(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags with the function that they name, as its code."""
    from serverless_bench.driver.pickling import pack

    return {**flags, "code": pack(load_function(flags["own"]))}


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
