"""Azure Blob Storage: account and credentials, and the requests that obstore lacks.

The environment variables are those of obstore and of Azure's tools: an account, and its key, a
shared access signature or a bearer token. Credentials that have to be requested from a service
(managed identities, client secrets) are not supported: the two libraries could resolve different
identities.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn
from urllib.parse import urlsplit

from serverless_bench.base.errors import (
    AccessDenied,
    BadRequest,
    BadResponse,
    ConnectionLost,
    TimedOut,
    UsageError,
)
from serverless_bench.base.plugins import extra
from serverless_bench.clients.base import Exchange
from serverless_bench.clients.environment import ca_bundle, first_set
from serverless_bench.clients.library import lower
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.job.target import Addressing, Target

if TYPE_CHECKING:
    from obstore.store import AzureConfig, AzureStore, ClientConfig

_ACCOUNT: Final = ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")
_KEY: Final = (
    *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"),
    *("AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY"),
)
_SIGNATURE: Final = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
_TOKEN: Final = ("AZURE_STORAGE_TOKEN",)
_OWN_HOSTS: Final = ".blob.core."
"""Common part of the host names of Azure's clouds after the account (``.windows.net`` in most)."""
_FAR_FUTURE_S: Final = 1 << 40


@contextmanager
def _translated() -> Iterator[None]:
    from azure.core import exceptions

    try:
        yield
    except exceptions.HttpResponseError as exc:
        if exc.status_code is None:
            # Without a status, either signing failed or the response could not be parsed.
            is_unsigned = isinstance(exc, exceptions.ClientAuthenticationError)
            raise (AccessDenied if is_unsigned else BadResponse)(str(exc)) from exc
        answer: Any = exc.response
        headers = {} if answer is None else lower(answer.headers)
        code = getattr(exc, "error_code", None) or ""
        message = str(exc.message).partition("\n")[0]
        raise s3_error(exc.status_code, getattr(code, "value", code), message, headers) from exc
    except (exceptions.ServiceRequestTimeoutError, exceptions.ServiceResponseTimeoutError) as exc:
        raise TimedOut(str(exc)) from exc
    except (exceptions.ServiceRequestError, exceptions.ServiceResponseError) as exc:
        raise ConnectionLost(str(exc)) from exc
    except exceptions.AzureError as exc:
        raise BadResponse(str(exc)) from exc
    except ValueError as exc:
        # Raised for a token over http, which the library does not send.
        raise AccessDenied(str(exc)) from exc


class AzureRequests:
    """The requests about a container, through azure-storage-blob.

    Parameters
    ----------
    target
        The target with the container.
    user_agent
        User agent of the requests.
    timeout_s
        Timeout for connecting, and for a response without progress.

    Raises
    ------
    PluginError
        If the library is not installed.
    AccessDenied
        If no credentials exist that the library would send there.
    """

    def __init__(self, target: Target, user_agent: str, timeout_s: float) -> None:
        with extra(Azure.extra, "Azure Blob Storage"):
            from azure.storage.blob import ContainerClient

        bundle = ca_bundle()
        with _translated():
            self._container = ContainerClient(
                account_url(target, target.endpoint_url),
                target.bucket,
                credential=_credential(),
                retry_total=0,
                permit_redirects=False,
                user_agent=user_agent,
                user_agent_overwrite=True,
                connection_timeout=timeout_s,
                read_timeout=timeout_s,
                connection_verify=True if bundle is None else str(bundle),
            )

    @_translated()
    def head_bucket(self, exchange: Exchange) -> None:
        """Check that the container exists and is accessible."""
        self._container.get_container_properties(raw_response_hook=_reporting(exchange))

    @_translated()
    def create_bucket(self, exchange: Exchange) -> None:
        """Create the container; an existing one causes an error with status 409."""
        self._container.create_container(raw_response_hook=_reporting(exchange))

    @_translated()
    def delete_version(self, key: str, version: str, exchange: Exchange) -> None:
        """Delete an object if it still has this version; otherwise fail with status 412."""
        from azure.core import MatchConditions

        self._container.delete_blob(
            key,
            etag=version,
            match_condition=MatchConditions.IfNotModified,
            raw_response_hook=_reporting(exchange),
        )

    def list_uploads(self, prefix: str, after: object, exchange: Exchange) -> NoReturn:
        """Raise an error: Azure discards uncommitted blocks after a week, without listing them."""
        raise BadRequest("Azure lists no open uploads", status=501)

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> NoReturn:
        """Raise an error, because uploads cannot be listed."""
        raise BadRequest("Azure cannot abort uploads", status=501)

    def close(self) -> None:
        self._container.close()


class Azure:
    """Azure Blob Storage, with the storage account of the environment."""

    extra = "azure"
    signing = "Shared Key, a shared access signature or a bearer token; the body is not hashed"
    credentials_hint = (
        "set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or"
        " AZURE_STORAGE_TOKEN"
    )

    version_field: Literal["e_tag"] = "e_tag"
    """Metadata field that identifies a version of an object."""
    requests = AzureRequests

    def endpoint(self) -> str:
        """Return the endpoint of the account in the environment.

        Raises
        ------
        UsageError
            If no account is set.
        """
        account = first_set(_ACCOUNT)
        if not account:
            raise UsageError(
                "`bucket` az://: no storage account is set", hint=self.credentials_hint
            )
        return f"https://{account}{_OWN_HOSTS}windows.net"

    def has_credentials(self, endpoint_url: str = "") -> bool:
        """Return whether credentials are set, for any endpoint."""
        return bool(first_set(_ACCOUNT) and first_set((*_KEY, *_SIGNATURE, *_TOKEN)))

    def open_store(
        self, target: Target, endpoint_url: str, client_options: "ClientConfig"
    ) -> "AzureStore":
        """Return obstore's store for a container, without retries."""
        from obstore.store import AzureStore

        config: AzureConfig = {
            "account_name": first_set(_ACCOUNT),
            "endpoint": account_url(target, endpoint_url),
            # It would use the default port of the emulator, for any endpoint.
            "use_emulator": False,
        }
        # Same order as `AzureRequests`, regardless of other credentials that obstore would use.
        if key := first_set(_KEY):
            config |= {"account_key": key, "credential_type": "access_key"}
        elif signature := first_set(_SIGNATURE):
            config |= {"sas_key": signature.removeprefix("?"), "credential_type": "sas_token"}
        else:
            config |= {"token": first_set(_TOKEN), "credential_type": "bearer_token"}
        return AzureStore(
            target.bucket,
            config=config,
            client_options=client_options,
            retry_config={"max_retries": 0},
        )


def account_url(target: Target, endpoint_url: str) -> str:
    """Return the URL of an account: by host name on Azure, by path at any other endpoint.

    Raises
    ------
    AccessDenied
        If the endpoint belongs to another account, which must not receive the signature.
    """
    host, account = urlsplit(endpoint_url).hostname or "", first_set(_ACCOUNT).lower()
    if target.addressing is Addressing.AUTO:
        is_named = _OWN_HOSTS in host or host.startswith(f"{account}.")
    else:
        is_named = target.addressing is Addressing.VIRTUAL
    if account and _OWN_HOSTS in host and not host.startswith(f"{account}."):
        raise AccessDenied(f"{host} does not belong to the account AZURE_STORAGE_ACCOUNT_NAME")
    return endpoint_url if is_named else f"{endpoint_url}/{account}"


def _credential() -> Any:
    from azure.core.credentials import (
        AccessToken,
        AzureNamedKeyCredential,
        AzureSasCredential,
    )

    if key := first_set(_KEY):
        return AzureNamedKeyCredential(first_set(_ACCOUNT), key)
    if signature := first_set(_SIGNATURE):
        return AzureSasCredential(signature.removeprefix("?"))
    # The caller's environment renews it; see azure.core.credentials.TokenCredential.
    token = AccessToken(first_set(_TOKEN), _FAR_FUTURE_S)
    return SimpleNamespace(get_token=lambda *_, **__: token)


def _reporting(exchange: Exchange) -> Callable[[Any], None]:
    """Return a hook that reports each response of the library."""

    def answered(response: Any) -> None:
        answer = response.http_response
        exchange.answered(answer.status_code, lower(answer.headers))

    return answered


CLOUD: Final = Azure()
