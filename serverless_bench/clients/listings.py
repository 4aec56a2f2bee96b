"""Listings of a bucket other than of its objects: versions, and open uploads in parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus, urlencode

from serverless_bench.base.units import whole_number
from serverless_bench.clients.library import check_page
from serverless_bench.clients.s3_http import document, first_text, local_name, texts


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
    return _query({"versions": "", "prefix": prefix, "encoding-type": "url", **(marker or {})})


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


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """An upload in parts that is neither complete nor aborted."""

    key: str
    upload_id: str


def uploads_query(prefix: str, after: OpenUpload | None) -> str:
    """Return the query of a listing of the uploads below ``prefix`` and after ``after``."""
    marker = after and {"key-marker": after.key, "upload-id-marker": after.upload_id}
    return _query({"uploads": "", "prefix": prefix, **(marker or {})})


def read_uploads(text: bytes, prefix: str) -> tuple[list[OpenUpload], OpenUpload | None]:
    """Return a page of open uploads, and the last upload before the next page.

    Raises
    ------
    BadResponse
        If the text is not such a page.
    """
    listed = document(text, "ListMultipartUploadsResult", "the list of open uploads")
    uploads = [
        OpenUpload(*(first_text(entry, name) for name in ("Key", "UploadId")))
        for entry in listed
        if local_name(entry) == "Upload"
    ]
    check_page([upload.key for upload in uploads], prefix, more=False)
    if "true" not in texts(listed, "IsTruncated"):
        return uploads, None
    names = ("NextKeyMarker", "NextUploadIdMarker")
    return uploads, OpenUpload(*(first_text(listed, name) for name in names))


def _query(wanted: Mapping[str, str]) -> str:
    """Return parameters sorted by name, as required by a signature."""
    return urlencode(sorted(wanted.items()), safe="", quote_via=quote)
