"""``sbench call``."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.cli.job import perform, prepare
from serverless_bench.cli.options import (
    format_option,
    object_options,
    option,
    run_options,
    target_options,
    transfer_options,
)
from serverless_bench.cli.target import check_room, open_target
from serverless_bench.cli.write import object_sizes
from serverless_bench.errors import UsageError
from serverless_bench.job.keys import read_key_file
from serverless_bench.job.spec import OWN_FUNCTION
from serverless_bench.units import format_size

if TYPE_CHECKING:
    from serverless_bench.driver.pickling import OwnFunction


@click.command("call")
@click.argument("own", metavar="FILE.py:FUNCTION")
@option("--number", type=int, default=4, show_default=True, help="Functions.")
@option("--objects", type=int, default=1, show_default=True, help="Per function: new, and given.")
@option("--mb", type=int, help="Size of a new object in MiB; without a size none may be made.")
@option("--size", help="Size of a new object with its unit, as in 2GB or 64MiB.")
@option("--prefix", default="sbench/", show_default=True, help="Goes before every key.")
@option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Deal out the objects listed here, one key per line.",
)
@object_options
@target_options
@transfer_options
@run_options
@format_option
def command(
    own: str,
    number: int,
    objects: int,
    mb: int | None,
    size: str | None,
    key_file: Path | None,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Call a function of your own in many functions, and report what it did.

    It gets the client, the bytes of objects and the recorder as its one argument;
    docs/own-function.md says how. It is sent by value, and runs with the rights of the
    functions: on AWS only where the stack was deployed with AllowCode=true.
    """
    from serverless_bench.driver.pickling import pack

    object_bytes: int | None = None
    mean_bytes = 0
    if (mb, size, flags["sizes"]) != (None, None, None):
        object_bytes, mean_bytes = object_sizes(mb, size, flags["sizes"])
    code = pack(load_function(own))
    prepared = prepare(
        OWN_FUNCTION,
        {**flags, "load": {"code": code}},
        invocations=number,
        objects=objects,
        object_bytes=object_bytes,
        keys=() if key_file is None else read_key_file(key_file),
    )
    if prepared.where.embedded and mean_bytes:
        what = f"{number * objects} objects of {format_size(mean_bytes)}"
        check_room(number * objects * mean_bytes, what)
    with open_target(prepared.where) as target:
        return perform(prepared, target).exit_code


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
