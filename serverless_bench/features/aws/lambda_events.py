"""Asynchronous Invoke requests to AWS Lambda in half the time of botocore's ``invoke``.

botocore needs more than a CPU-ms for each, and the launch rate of a driver is limited by one core.
Connections, proxy, certificates and signatures are still those of botocore.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from botocore.awsrequest import AWSRequest
from botocore.endpoint import convert_to_response_dict
from botocore.exceptions import ClientError
from botocore.parsers import create_parser


def send_event(
    api: Any,
    name: str,
    payload: bytes,
) -> Mapping[str, Any]:
    """Send an event to a function.

    Parameters
    ----------
    api
        botocore's client for Lambda.
    name
        The function, as Invoke's ``FunctionName``.
    payload
        The event, as JSON.

    Returns
    -------
    Mapping
        Invoke's response.

    Raises
    ------
    botocore.exceptions.BotoCoreError
        If there is no response, or no credentials.
    botocore.exceptions.ClientError
        If the request is rejected.
    """
    path = f"/2015-03-31/functions/{quote(name, safe='')}/invocations"
    headers = {"User-Agent": api.meta.config.user_agent, "X-Amz-Invocation-Type": "Event"}
    request = AWSRequest("POST", api.meta.endpoint_url + path, headers, payload)
    api._request_signer.sign("Invoke", request)  # noqa: SLF001
    response = api._endpoint.http_session.send(request.prepare())  # noqa: SLF001
    if response.status_code >= 300:
        model = api.meta.service_model.operation_model("Invoke")
        parser = create_parser(model.service_model.resolved_protocol)
        error = parser.parse(convert_to_response_dict(response, model), model.output_shape)
        # botocore reads this member of a rejection elsewhere.
        with suppress(ValueError, TypeError, KeyError):
            error["Reason"] = json.loads(response.content)["Reason"]
        raise ClientError(error, "Invoke")
    return {"StatusCode": response.status_code}
