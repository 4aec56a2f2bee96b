"""Whether a run was made here, by this user; and what another one's directory may have us do.

A run directory says where requests go and which functions are invoked, and it may come from
anybody. Its header therefore carries a seal, made with a key that never leaves the user's own
state directory. Without it a directory is believed only as far as this user's settings would
have gone the same way. docs/decisions/0039 has what else was considered.
"""

import hmac
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import platformdirs

from serverless_bench.driver.target import configured_endpoints
from serverless_bench.errors import UsageError
from serverless_bench.job.endpoint import is_aws, parse_endpoint
from serverless_bench.job.load import is_in_files
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.types import wrong
from serverless_bench.rundir.run import SCHEMA, Run, read_header

SEAL: Final = "origin"
"""The field of a run's header."""
_KEY_BYTES: Final = 32
_SHOWN: Final = 3
"""Functions that a message names."""


def sealed(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a new run with this user's seal."""
    path = _key_path()
    with suppress(OSError):
        if _stored_key(path) is None:
            _store_key(path)
    key = _stored_key(path) or _fleeting_key()
    return {**header, SEAL: _seal({"schema": SCHEMA, **header}, key)}


def is_ours(path: Path) -> bool:
    """Tell whether this user made the run in a directory, and its header is as it was then."""
    header = read_header(path)
    seal = header.pop(SEAL, None)
    if not isinstance(seal, str) or not seal.isascii():
        return False
    keys = (_stored_key(_key_path()), _fleeting_key())
    # What is nested deeper than can be written was not written by us.
    with suppress(orjson.JSONEncodeError):
        return any(key and hmac.compare_digest(_seal(header, key), seal) for key in keys)
    return False


def confirm(run: Run, *, trust: bool) -> str:
    """Refuse what a directory asks for that its user would not, unless that is meant.

    Parameters
    ----------
    run
        Of the directory. No request is made, and no name is looked up.
    trust
        Whether it is meant.

    Returns
    -------
    str
        What will be asked, and where, if the run was not made here; empty if it was.

    Raises
    ------
    UsageError
        If the run was not made here, and asks for what this user's settings would not; or if it
        was simulated.
    """
    if run.simulated is not None:
        raise UsageError(
            f"{run.path} was simulated: there is nothing of it on any store",
            hint="delete the directory, and it is gone",
        )
    if is_ours(run.path):
        return ""
    where = [*_places(run.job)]
    strange = [place for place, is_usual in where if not is_usual]
    if strange and not trust:
        raise UsageError(
            f"{run.path} was not made here, and uses {', '.join(strange)}: your own settings would"
            " not",
            hint="--trust if you know whose it is (trust=True in Python); name a store that"
            " is yours in SBENCH_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL",
        )
    return f"{run.path} was not made here; it uses {', '.join(place for place, _ in where)}"


def _places(job: JobSpec) -> Iterator[tuple[str, bool]]:
    """Yield what a job uses, and whether this user's settings would use it, too."""
    if job.load.array is not None and job.load.array.path is not None:
        yield f"the directory {job.load.array.path!r}", False
    if not is_in_files(job.load):
        yield from _stores(job)
    if job.functions:
        more = f" and {len(job.functions) - _SHOWN} more" if len(job.functions) > _SHOWN else ""
        names = ", ".join(map(repr, job.functions[:_SHOWN]))
        yield f"the functions {names}{more}", False
    if job.scheduler is not None:
        yield f"the Dask scheduler {job.scheduler!r}", False
    if job.ssh_hosts:
        yield f"the hosts {', '.join(map(repr, job.ssh_hosts[:_SHOWN]))}", False


def _stores(job: JobSpec) -> Iterator[tuple[str, bool]]:
    target, control = job.target, job.control
    # The embedded store is this user's own, at the address that it has now.
    moved = {target.endpoint_url} if target.store is not None else set()
    if moved:
        yield "the embedded store", True
    named = [(target, url) for url in (target.endpoint_url, *job.endpoints)]
    if control is not None:
        named.append((control, control.endpoint_url))
    for one, url in {(t.bucket_name, url): (t, url) for t, url in named}.values():
        if url not in moved:
            there = parse_endpoint(url) if url else ""
            if there != url.removesuffix("/"):
                raise wrong("endpoint_url", f"{url!r} is not a URL of a store")
            shown = f"{there or 'AWS'} (bucket {one.bucket_name!r})"
            yield shown, _is_usual(there, one.protocol)


def _is_usual(url: str, protocol: StoreProtocol) -> bool:
    """Tell whether the environment or the AWS configuration would lead to an endpoint."""
    named = configured_endpoints(protocol)
    if named or protocol is not StoreProtocol.S3:
        return url in named
    return not url or is_aws(url)


def _seal(header: Mapping[str, Any], key: bytes) -> str:
    # As it is read again: JSON has neither tuples nor enumerations.
    fields = orjson.loads(orjson.dumps(header))
    data = orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)
    return hmac.digest(key, data, "sha256").hex()


def _key_path() -> Path:
    return platformdirs.user_state_path("sbench") / "origin.key"


@cache
def _fleeting_key() -> bytes:
    """Return a key for as long as this process lives, where none can be stored."""
    return secrets.token_bytes(_KEY_BYTES)


def _stored_key(path: Path) -> bytes | None:
    """Return the user's key; None if there is none, or somebody else may know it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_mode & 0o077:
            return None
        key = os.read(file, _KEY_BYTES) if about.st_uid == os.geteuid() else b""
    finally:
        os.close(file)
    return key if len(key) == _KEY_BYTES else None


def _store_key(path: Path) -> None:
    """Make the user's key; of several processes that do so at once, one wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as writing:
            writing.write(secrets.token_bytes(_KEY_BYTES))
        try:
            # Not renamed: a key that another process made meanwhile stays.
            path.hardlink_to(draft)
        except OSError:
            # One that somebody else may know does not, nor is there a link on every file system.
            if _stored_key(path) is None:
                draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
