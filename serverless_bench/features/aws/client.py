"""Clients for AWS's control services, with errors in a line.

None of their requests is measured. Endpoints come from ``AWS_ENDPOINT_URL_<SERVICE>`` if these
are set, as in botocore: this allows a laptop to stand in for AWS.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.base.errors import ExecutorError
from serverless_bench.clients.aws_credentials import CONFIG, UNREADABLE, open_session
from serverless_bench.clients.aws_errors import (
    CREDENTIALS,
    CREDENTIALS_HINT,
    credentials_error,
    hint_for,
    network_problem,
    shortened,
)
from serverless_bench.job.endpoint import refuse_password

DEFAULT_REGION: Final = "us-east-1"


def open_client(
    service: str,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    look_again: bool = False,
    **config: Any,
) -> Any:
    """Return a botocore client with few retries and short timeouts.

    Parameters
    ----------
    service
        botocore's name, as in ``"lambda"``.
    region
        None takes the AWS configuration's region, or ``DEFAULT_REGION``.
    endpoint_url
        None takes the endpoint of AWS or of the environment.
    look_again
        Whether to discard cached credentials, because a profile may have changed.
    config
        Settings of ``botocore.config.Config`` that differ from those of all clients.
    """
    # Importing this takes a quarter of a second, and most commands need no client.
    from botocore.config import Config

    from serverless_bench.clients.aws_credentials import forget_credentials

    if look_again:
        forget_credentials()
    with explained(service):
        session = open_session()
        client = session.create_client(
            service,
            region_name=region or session.get_config_variable("region") or DEFAULT_REGION,
            endpoint_url=endpoint_url,
            config=Config(**{**CONFIG, **config}),
        )
    refuse_password(client.meta.endpoint_url)
    return client


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn errors of botocore inside the block into a line for the user.

    Parameters
    ----------
    what
        The service or resource in use, which starts the line.

    Raises
    ------
    ExecutorError
        For all errors of botocore.
    """
    try:
        yield
    except boto.ClientError as exc:
        error = exc.response.get("Error", {})
        # A service that stands in for AWS may respond with an HTML page.
        words = str(error.get("Message", "")).partition("<")[0]
        text = f"{error.get('Code', '')}: {shortened(words) or 'no words'}"
        hint = hint_for(exc) or "check the region, and the permissions of these credentials"
        raise ExecutorError(f"{what}: {text}", hint=hint) from exc
    except CREDENTIALS as exc:
        raise credentials_error(exc) from exc
    except UNREADABLE as exc:
        raise ExecutorError(str(exc), hint=CREDENTIALS_HINT) from exc
    except (boto.BotoCoreError, ValueError) as exc:
        text, hint = network_problem(exc, "check the network, and AWS_ENDPOINT_URL if it is set")
        raise ExecutorError(f"{what}: {text}", hint=hint) from exc


def error_code(error: BaseException) -> str:
    """Return AWS's code of an error that ``explained`` raised; empty if there is none."""
    cause = error.__cause__
    if not isinstance(cause, boto.ClientError):
        return ""
    return str(cause.response.get("Error", {}).get("Code", ""))
