"""``sbench examples``."""

import re
from pathlib import Path
from typing import Final

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.base.user_files import refusing
from serverless_bench.cli.flags.options import FOLDER, Choice, option
from serverless_bench.cli.output.terminal import say
from serverless_bench.rundir.files import replacing

_EXAMPLES: Final = Path(__file__).with_name("files")
"""In a clone, links to the files of its folder ``examples``."""
_INDEX: Final = "README.md"
_FILES: Final = [
    # pip compiles modules when it installs them.
    path.relative_to(_EXAMPLES)
    for path in sorted(_EXAMPLES.rglob("*.*"))
    if path.name != _INDEX and path.suffix != ".pyc"
]


@click.command("examples")
@click.argument(
    "names",
    nargs=-1,
    metavar="[NAME]...",
    type=Choice(list(dict.fromkeys(path.parts[0] for path in _FILES))),
)
@click.option("--all", "every", is_flag=True, help="Write all of them.")
@option("--folder", type=FOLDER, default="examples", help="Where to write them.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
def command(names: tuple[str, ...], *, every: bool, folder: Path, overwrite: bool) -> None:
    """List the examples, or write those named into a folder."""
    copies = {path: folder / path for path in _FILES if every or path.parts[0] in names}
    if not copies:
        index = (_EXAMPLES / _INDEX).read_text("utf-8").replace("`", "")
        table = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", index)
        rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
        say(*(f"{name:24} {purpose}" for name, purpose in rows[2:]))
        return
    # A link could lead to any file of the user's.
    places = {folder / parent for path in copies for parent in (path, *path.parents)}
    if links := sorted(str(place) for place in places if place.is_symlink()):
        raise UsageError(f"{', '.join(links)} is a link", hint="--folder names another folder")
    existing = [str(copy) for copy in copies.values() if copy.exists()]
    if existing and not overwrite:
        raise UsageError(
            f"{', '.join(existing)} exists already",
            hint="--overwrite replaces files; --folder names another folder",
        )
    for path, copy in copies.items():
        with refusing(copy, "or write"):
            copy.parent.mkdir(parents=True, exist_ok=True)
            with replacing(copy) as file:
                file.write((_EXAMPLES / path).read_bytes())
        say(f"wrote {copy}")
