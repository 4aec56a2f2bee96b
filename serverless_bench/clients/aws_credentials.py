"""Credentials of the AWS configuration, looked for by botocore.

Whoever uses them catches ``BotoCoreError``. botocore raises other errors, too: ``RuntimeError``
where temporary credentials have expired and nothing renews them, and whatever a service or a
program that should renew them has answered.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.credentials import Credentials
from botocore.exceptions import ClientError, CredentialRetrievalError
from botocore.session import Session


class ExpiredCredentialsError(CredentialRetrievalError):
    """Temporary credentials have expired, and nothing has renewed them."""

    fmt = "they have expired"


class AwsSession(Session):
    """A botocore session whose credentials raise nothing but ``BotoCoreError``."""

    def get_credentials(self) -> Credentials | None:
        with _one_error("the AWS configuration"):
            credentials = super().get_credentials()
        if credentials is not None:
            freeze = _one_error(credentials.method)(credentials.get_frozen_credentials)
            # What signs a request calls this alone; the session returns the same ones again.
            vars(credentials).setdefault("get_frozen_credentials", freeze)
        return credentials


@contextmanager
def _one_error(provider: str) -> Iterator[None]:
    """Raise ``CredentialRetrievalError`` in place of what is no ``BotoCoreError``."""
    try:
        yield
    except RuntimeError as exc:
        raise ExpiredCredentialsError(provider=provider) from exc
    except (ClientError, OSError, ValueError) as exc:
        raise CredentialRetrievalError(provider=provider, error_msg=str(exc)) from exc
