"""Requests for the versions in a bucket."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from urllib.parse import quote, unquote_plus, urlencode

from serverless_bench.base.errors import NotFound, OperationError
from serverless_bench.base.units import whole_number
from serverless_bench.clients.base import Exchange
from serverless_bench.clients.library import check_page
from serverless_bench.clients.listings import sorted_query
from serverless_bench.clients.s3_http import document, first_text, local_name, texts
from serverless_bench.driver.bucket import DENIED, Bucket, BucketClient, is_not_offered
from serverless_bench.worker.object_io import Head


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of an object, or one delete marker."""

    key: str
    version_id: str
    size: int = 0
    """Size in bytes; 0 for a delete marker."""
    is_marker: bool = False
    """Whether it is a delete marker, without content."""

    @property
    def query(self) -> str:
        """The query of a request for this version."""
        return urlencode({"versionId": self.version_id}, safe="", quote_via=quote)


def versions_query(prefix: str, after: ObjectVersion | None) -> str:
    """Return the query of a listing of the versions below ``prefix`` and after ``after``."""
    marker = after and {"key-marker": after.key, "version-id-marker": after.version_id}
    return sorted_query(
        {"versions": "", "prefix": prefix, "encoding-type": "url", **(marker or {})}
    )


def read_versions(text: bytes, prefix: str) -> tuple[list[ObjectVersion], ObjectVersion | None]:
    """Return a page of versions, and the last version before the next page.

    Raises
    ------
    BadResponse
        If the text is not such a page.
    """
    listed = document(text, "ListVersionsResult", "the list of versions")
    is_encoded = "url" in texts(listed, "EncodingType")

    def key_of(text: str) -> str:
        return unquote_plus(text) if is_encoded else text

    versions = [
        ObjectVersion(
            key=key_of(first_text(entry, "Key")),
            version_id=first_text(entry, "VersionId"),
            size=whole_number(first_text(entry, "Size")) or 0,
            is_marker=local_name(entry) == "DeleteMarker",
        )
        for entry in listed
        if local_name(entry) in {"Version", "DeleteMarker"}
    ]
    check_page([version.key for version in versions], prefix, more=False)
    if "true" not in texts(listed, "IsTruncated"):
        return versions, None
    key = key_of(first_text(listed, "NextKeyMarker"))
    return versions, ObjectVersion(key, first_text(listed, "NextVersionIdMarker"))


class VersionsClient(BucketClient):
    """The thin client with requests for versions."""

    def list_versions(
        self, prefix: str, after: ObjectVersion | None, exchange: Exchange
    ) -> tuple[list[ObjectVersion], ObjectVersion | None]:
        """Return a page of versions, and the version after which the next page starts."""
        query = versions_query(prefix, after)
        response = self._send("ListObjectVersions", "", exchange, query=query)
        return read_versions(response.text, prefix)

    def delete_version(self, version: ObjectVersion, exchange: Exchange) -> None:
        """Delete a version or delete marker permanently."""
        self._send("DeleteObject", version.key, exchange, query=version.query)


class VersionedBucket(Bucket):
    """A bucket that may keep versions."""

    _client: VersionsClient
    _client_of_s3: ClassVar[type[BucketClient]] = VersionsClient

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Yield the versions and delete markers of all keys that start with ``prefix``.

        Yields no versions if the store does not support them.
        """
        try:
            yield from self.marked("versions", partial(self._client.list_versions, prefix))
        except OperationError as exc:
            if not is_not_offered(exc) or exc.status in DENIED:
                raise

    def head_version(self, version: ObjectVersion, length: int) -> Head:
        """Return the first bytes of a version."""
        call = partial(self._client.get_head, version.key, length, query=version.query)
        return Head.from_response(*self._run("get", call))

    def delete_version(self, version: ObjectVersion) -> None:
        """Delete a version or delete marker permanently."""
        with suppress(NotFound):
            self._run("delete", partial(self._client.delete_version, version))
