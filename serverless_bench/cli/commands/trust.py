"""``sbench trust``."""

from collections.abc import Sequence
from pathlib import Path

import click

from serverless_bench.cli.flags.defaults import SETTINGS
from serverless_bench.cli.flags.options import FILE
from serverless_bench.cli.output.terminal import aside, confirmed, say
from serverless_bench.errors import UsageError
from serverless_bench.process import trust
from serverless_bench.user_files import read_text, reason, refusing


# Nothing may say in a file that a file is trusted.
@click.command("trust", context_settings={"default_map": {}})
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE]...")
@click.option("--yes", is_flag=True, help="Do not ask: for scripts.")
@click.option("--list", "listing", is_flag=True, help="Show the files that you trust.")
@click.option("--forget", is_flag=True, help="Trust the files no more.")
def command(files: tuple[Path, ...], *, yes: bool, listing: bool, forget: bool) -> None:
    """Have a settings file of this folder count as a whole.

    FILE is an sbench.toml or a .lithops_config; those of the current folder without it. You see
    what is new in it, and are asked. It is trusted as long as it lies there and does not change.
    """
    if listing:
        say(*(f"{path}: {_state(Path(path))}" for path in trust.trusted()))
        return
    for path in files or _files_here(forget=forget):
        if path.name not in (SETTINGS, trust.LITHOPS):
            raise UsageError(
                f"{path} is no {SETTINGS} and no {trust.LITHOPS}",
                hint=f"name it each time: sbench --config {path}",
            )
        if forget:
            was = trust.forget(path)
            say(f"{path} is trusted no more" if was else f"{path} was not trusted")
        else:
            _ask(path, yes=yes)


def _ask(path: Path, *, yes: bool) -> None:
    """Show what is new in a file, and trust it if the user says so."""
    with refusing(path):
        text = read_text(path)
    if not trust.doubt(path, text):
        say(f"{path} is trusted already")
        return
    aside(*trust.changes(path, text))
    if yes or confirmed(f"trust {path} as it is now", hint="--yes, or name it with --config"):
        trust.trust(path, text)
        say(f"{path} is trusted until it changes")


def _files_here(*, forget: bool) -> Sequence[Path]:
    paths = [Path(SETTINGS), Path(trust.LITHOPS)]
    here = [path for path in paths if forget or path.exists()]
    if not here:
        raise UsageError(f"there is no {SETTINGS} and no {trust.LITHOPS} here")
    return here


def _state(path: Path) -> str:
    try:
        return trust.doubt(path, read_text(path)) or "it is as it was"
    except (OSError, ValueError) as exc:
        return f"it cannot be read: {reason(exc)}"
