"""Sessions of botocore, and credentials from the AWS configuration, resolved once per process.

Callers catch ``BotoCoreError``. botocore also raises other errors: ``RuntimeError`` for expired
temporary credentials that cannot be renewed, and the errors of services and programs that should
renew them.

All sessions of a process share a credentials object, which botocore renews under a lock: a program
runs once, and the user enters an MFA code once. Roles are cached in the directory of the AWS CLI.
"""

import getpass
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from warnings import catch_warnings, simplefilter

from botocore.credentials import (
    CredentialProvider,
    CredentialResolver,
    Credentials,
    RefreshableCredentials,
    create_credential_resolver,
)
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigParseError,
    CredentialRetrievalError,
    ProfileNotFound,
)
from botocore.session import Session
from botocore.utils import JSONFileCache

from serverless_bench.base.parent_keys import ask_parent, has_parent
from serverless_bench.base.process import around_prompts
from serverless_bench.clients.environment import REGIONS

if TYPE_CHECKING:
    from botocore.loaders import Loader

CONFIG: Final[Mapping[str, Any]] = {
    "connect_timeout": 5,
    "read_timeout": 30,
    "retries": {"mode": "standard", "total_max_attempts": 3},
    # Many S3-compatible stores do not support the newer checksums.
    "request_checksum_calculation": "when_required",
    "response_checksum_validation": "when_required",
}
"""Settings of clients for requests that are not measured."""
UNREADABLE: Final = (ProfileNotFound, ConfigParseError)
"""Errors of a profile that does not exist, or of a file that cannot be read."""

_lock: Final = threading.RLock()
_credentials_by_environment: dict[tuple[tuple[str, str], ...], Credentials] = {}
"""Credentials of this process, by the environment in which they were resolved."""


class ExpiredCredentialsError(CredentialRetrievalError):
    """Temporary credentials have expired, and could not be renewed."""

    fmt = "they have expired"


class AwsSession(Session):
    """A botocore session with the credentials of this process, and the region of the AWS CLI.

    It raises only ``BotoCoreError``.
    """

    def __init__(self) -> None:
        # A variable that is set to nothing must not hide the next one.
        regions = [name for name in REGIONS if os.environ.get(name)]
        super().__init__(session_vars={"region": ("region", regions, None, None)})

    def get_credentials(self) -> Credentials | None:
        names = ("HOME", *(name for name in os.environ if name.startswith("AWS_")))
        environment = tuple((name, os.environ.get(name, "")) for name in sorted(names))
        with _lock:
            if environment in _credentials_by_environment:
                return _credentials_by_environment[environment]
            with _one_error("the AWS configuration"):
                credentials = super().get_credentials()
            if credentials is not None:
                refresh: Any = getattr(credentials, "_refresh_using", None)
                if hasattr(refresh, "_has_been_called"):
                    # botocore prompts for an MFA code once, and fails when that session expires.
                    vars(credentials)["_refresh_using"] = refresh._refresh  # noqa: SLF001
                freeze = _one_error(credentials.method)(credentials.get_frozen_credentials)
                # Signing calls only this method.
                vars(credentials)["get_frozen_credentials"] = freeze
                _credentials_by_environment.clear()
                _credentials_by_environment[environment] = credentials
            return credentials

    def _create_credential_resolver(self) -> CredentialResolver:
        if has_parent():
            return CredentialResolver([_ParentProvider()])
        cache: Any = JSONFileCache(str(Path("~/.aws/cli/cache").expanduser()))
        resolver: CredentialResolver = create_credential_resolver(self, cache)
        # It accepts a custom MFA prompt only through this attribute.
        role: Any = resolver.get_provider("assume-role")
        role._prompter = _ask  # noqa: SLF001
        return resolver


@cache
def _loader(path: str | None) -> "Loader":
    from botocore.loaders import create_loader

    return create_loader(path)


def open_session() -> Session:
    """Return a session that shares its cache of service descriptions with other sessions.

    Reading them takes 90 ms of CPU time, nine tenths of the time to create a client.
    """
    session = AwsSession()
    # An error in a profile is reported when a client is created.
    with suppress(*UNREADABLE):
        session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


def forget_credentials() -> None:
    """Resolve credentials again at the next use."""
    with _lock:
        _credentials_by_environment.clear()


def keys_of_the_moment() -> Mapping[str, str | None] | None:
    """Return keys by their names in botocore's metadata, or an ``error``; None without keys."""
    try:
        credentials = AwsSession().get_credentials()
        if credentials is None:
            return None
        frozen = credentials.get_frozen_credentials()
    except BotoCoreError as exc:
        return {"error": str(exc)}
    return {
        "access_key": frozen.access_key,
        "secret_key": frozen.secret_key,
        "token": frozen.token,
    }


class _ParentProvider(CredentialProvider):
    """Gets credentials from the parent process."""

    METHOD = "parent"
    CANONICAL_NAME = "Parent"

    def load(self) -> Credentials | None:
        keys = ask_parent()
        if keys is None:
            return None
        return RefreshableCredentials.create_from_metadata(
            keys, refresh_using=ask_parent, method=self.METHOD
        )


def _ask(prompt: str) -> str:
    """Prompt the user for an MFA code, while progress displays on the terminal pause."""
    try:
        with around_prompts(), catch_warnings():
            # Without a terminal, getpass only warns and then uses standard input.
            simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(prompt)
    except (EOFError, getpass.GetPassWarning) as exc:
        reason = "there is no terminal to ask for an MFA code"
        raise CredentialRetrievalError(provider="assume-role", error_msg=reason) from exc


@contextmanager
def _one_error(provider: str) -> Iterator[None]:
    """Convert other exceptions to ``CredentialRetrievalError``."""
    try:
        yield
    except RuntimeError as exc:
        raise ExpiredCredentialsError(provider=provider) from exc
    except (ClientError, OSError, ValueError) as exc:
        raise CredentialRetrievalError(provider=provider, error_msg=str(exc)) from exc
