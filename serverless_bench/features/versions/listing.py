"""Requests for the versions of keys, and their pages."""

from dataclasses import dataclass
from urllib.parse import quote, unquote_plus, urlencode

from serverless_bench.base.units import whole_number
from serverless_bench.clients.base import Exchange
from serverless_bench.clients.library import check_page
from serverless_bench.clients.s3_http import document, first_text, local_name, sorted_query, texts
from serverless_bench.driver.bucket import BucketClient


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
