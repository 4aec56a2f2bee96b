"""Credentials of the AWS configuration, found by botocore once in a process.

Whoever uses them catches ``BotoCoreError``. botocore raises other errors, too: ``RuntimeError``
where temporary credentials have expired and nothing renews them, and whatever a service or a
program that should renew them has answered.

All sessions of a process share one credentials object, which botocore renews under a lock: a
program is run once, and an MFA code asked for once. Roles are kept where the AWS CLI keeps them.
"""

import getpass
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from warnings import catch_warnings, simplefilter

from botocore.credentials import (
    CredentialProvider,
    CredentialResolver,
    Credentials,
    RefreshableCredentials,
    create_credential_resolver,
)
from botocore.exceptions import ClientError, CredentialRetrievalError
from botocore.session import Session
from botocore.utils import JSONFileCache

from serverless_bench.process import around_prompts
from serverless_bench.process.parent_keys import ask_parent, has_parent

_CLI_CACHE: Final = "~/.aws/cli/cache"
_REGIONS: Final = ["AWS_REGION", "AWS_DEFAULT_REGION"]
"""The AWS CLI reads the first one, too, and botocore does not."""

_lock: Final = threading.RLock()
_found: dict[tuple[tuple[str, str], ...], Credentials] = {}
"""The credentials of this process, by the environment in which they were found."""


class ExpiredCredentialsError(CredentialRetrievalError):
    """Temporary credentials have expired, and nothing has renewed them."""

    fmt = "they have expired"


class AwsSession(Session):
    """A botocore session with the credentials of this process, and the region of the AWS CLI.

    It raises nothing but ``BotoCoreError``.
    """

    def __init__(self) -> None:
        super().__init__(session_vars={"region": ("region", _REGIONS, None, None)})

    def get_credentials(self) -> Credentials | None:
        names = ("HOME", *(name for name in os.environ if name.startswith("AWS_")))
        environment = tuple((name, os.environ.get(name, "")) for name in sorted(names))
        with _lock:
            if environment in _found:
                return _found[environment]
            with _one_error("the AWS configuration"):
                credentials = super().get_credentials()
            if credentials is not None:
                refresh: Any = getattr(credentials, "_refresh_using", None)
                if hasattr(refresh, "_has_been_called"):
                    # botocore asks for an MFA code once, and refuses when the session has ended.
                    vars(credentials)["_refresh_using"] = refresh._refresh  # noqa: SLF001
                freeze = _one_error(credentials.method)(credentials.get_frozen_credentials)
                # What signs a request calls this alone.
                vars(credentials)["get_frozen_credentials"] = freeze
                _found.clear()
                _found[environment] = credentials
            return credentials

    def _create_credential_resolver(self) -> CredentialResolver:
        if has_parent():
            return CredentialResolver([_ParentProvider()])
        cache: Any = JSONFileCache(str(Path(_CLI_CACHE).expanduser()))
        resolver: CredentialResolver = create_credential_resolver(self, cache)
        # It takes no other way to ask for an MFA code.
        role: Any = resolver.get_provider("assume-role")
        role._prompter = _ask  # noqa: SLF001
        return resolver


def forget_credentials() -> None:
    """Look for credentials again when they are next needed."""
    with _lock:
        _found.clear()


class _ParentProvider(CredentialProvider):
    """Gets credentials from the process that started this one."""

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
    """Ask the user for an MFA code, with nothing drawn on the terminal meanwhile."""
    try:
        with around_prompts(), catch_warnings():
            # Where there is no terminal, getpass warns, and reads what is no answer.
            simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(prompt)
    except (EOFError, getpass.GetPassWarning) as exc:
        reason = "there is no terminal to ask for an MFA code"
        raise CredentialRetrievalError(provider="assume-role", error_msg=reason) from exc


@contextmanager
def _one_error(provider: str) -> Iterator[None]:
    """Raise ``CredentialRetrievalError`` in place of what is no ``BotoCoreError``."""
    try:
        yield
    except RuntimeError as exc:
        raise ExpiredCredentialsError(provider=provider) from exc
    except (ClientError, OSError, ValueError) as exc:
        raise CredentialRetrievalError(provider=provider, error_msg=str(exc)) from exc
