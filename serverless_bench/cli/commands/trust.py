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


# Settings files must not set flags of this command: a file could declare itself trusted.
@click.command("trust", context_settings={"default_map": {}})
@click.argument("files", nargs=-1, type=FILE, metavar="[ls | FILE...]")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation: for scripts.")
@click.option("--forget", is_flag=True, help="Revoke the trust in the files.")
def command(files: tuple[Path, ...], *, yes: bool, forget: bool) -> None:
    """Trust a settings file of this folder, so that all its settings apply.

    `ls` lists the trusted files. FILE is an sbench.toml or a .lithops_config; the default is both
    in the current folder. The command shows the changes in the file and asks for confirmation. The
    file is trusted as long as it is neither moved nor changed.
    """
    if files == (Path("ls"),):
        say(*(f"{path}: {_state(Path(path))}" for path in trust.trusted()))
        return
    for path in files or _files_here(forget=forget):
        if path.name not in (SETTINGS, trust.LITHOPS):
            raise UsageError(
                f"{path} is neither {SETTINGS} nor {trust.LITHOPS}",
                hint=f"use --config in each command: sbench --config {path}",
            )
        if forget:
            say(f"{path} {'is no longer' if trust.forget(path) else 'was not'} trusted")
        else:
            _ask(path, yes=yes)


def _ask(path: Path, *, yes: bool) -> None:
    """Show the changes in a file, and trust it if the user confirms."""
    with refusing(path):
        text = read_text(path)
    if not trust.doubt(path, text):
        say(f"{path} is already trusted")
        return
    aside(*trust.changes(path, text))
    if yes or confirmed(f"trust {path} as it is now", hint="--yes, or name it with --config"):
        trust.trust(path, text)
        say(f"{path} is trusted until it changes")


def _files_here(*, forget: bool) -> Sequence[Path]:
    paths = [Path(SETTINGS), Path(trust.LITHOPS)]
    files = [path for path in paths if forget or path.exists()]
    if not files:
        raise UsageError(f"this folder has neither {SETTINGS} nor {trust.LITHOPS}")
    return files


def _state(path: Path) -> str:
    try:
        return trust.doubt(path, read_text(path)) or "unchanged"
    except (OSError, ValueError) as exc:
        return f"cannot be read: {reason(exc)}"
