"""Keys of a listing are decoded only if the store declares their encoding."""

from contextlib import closing

import pytest

from serverless_bench.clients import open_client
from serverless_bench.features.testing.client_parts import PatientMeter
from serverless_bench.job.target import Target, Transfer
from tests.stores.faulty import Exchange, FaultServer
from tests.stores.servers import KEYS


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("<EncodingType>url</EncodingType>", "p/a b c%"),
        # The form of versitygw.
        ("<EncodingType></EncodingType>", "p/a+b%20c%25"),
        ("", "p/a+b%20c%25"),
    ],
)
@pytest.mark.parametrize("client_name", ["awscrt", "wire"])
def test_keys_are_decoded_if_they_are_encoded(
    client_name: str, text: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    page = (
        "<ListBucketResult><Contents><Key>p/a+b%20c%25</Key></Contents>"
        f"<IsTruncated>false</IsTruncated>{text}</ListBucketResult>"
    )

    def lists(exchange: Exchange) -> bool:
        exchange.drain()
        exchange.say(200, page.encode())
        return True

    with FaultServer([lists]) as server:
        target = Target(client=client_name, bucket="test", endpoint_url=server.endpoint_url)
        with closing(open_client(target, Transfer())) as client:
            assert client.list_keys("p/", "", PatientMeter()) == ([meant], False)
