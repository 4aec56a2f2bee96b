"""Listings of a bucket besides that of its objects: their versions, and open uploads in parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus, urlencode

from serverless_bench.clients.library import check_page
from serverless_bench.clients.s3_http import document, first_text, local_name, texts
from serverless_bench.units import whole_number


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of an object, or one delete marker."""

    key: str
    version_id: str
    size: int = 0
    """Bytes; 0 of a delete marker."""
    is_marker: bool = False
    """Whether it only says that the object was deleted, and holds nothing."""

    @property
    def query(self) -> str:
        """The query of a request that is about this version alone."""
        return urlencode({"versionId": self.version_id}, safe="", quote_via=quote)


def versions_query(prefix: str, after: ObjectVersion | None) -> str:
    """Return the query of a listing of the versions below ``prefix`` and after ``after``."""
    marker = after and {"key-marker": after.key, "version-id-marker": after.version_id}
    return _query({"versions": "", "prefix": prefix, "encoding-type": "url", **(marker or {})})


def read_versions(text: bytes, prefix: str) -> tuple[list[ObjectVersion], ObjectVersion | None]:
    """Return a page of versions, and after which one the next page begins.

    Raises
    ------
    BadResponse
        If the text is no such page.
    """
    listed = document(text, "ListVersionsResult", "which versions there are")
    is_encoded = "url" in texts(listed, "EncodingType")

    def key_of(text: str) -> str:
        return unquote_plus(text) if is_encoded else text

    versions = [
        ObjectVersion(
            key=key_of(first_text(each, "Key")),
            version_id=first_text(each, "VersionId"),
            size=whole_number(first_text(each, "Size")) or 0,
            is_marker=local_name(each) == "DeleteMarker",
        )
        for each in listed
        if local_name(each) in {"Version", "DeleteMarker"}
    ]
    check_page([version.key for version in versions], prefix, more=False)
    if "true" not in texts(listed, "IsTruncated"):
        return versions, None
    key = key_of(first_text(listed, "NextKeyMarker"))
    return versions, ObjectVersion(key, first_text(listed, "NextVersionIdMarker"))


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """An upload in parts that is neither complete nor given up."""

    key: str
    upload_id: str


def uploads_query(prefix: str, after: OpenUpload | None) -> str:
    """Return the query of a listing of the uploads below ``prefix`` and after ``after``."""
    marker = after and {"key-marker": after.key, "upload-id-marker": after.upload_id}
    return _query({"uploads": "", "prefix": prefix, **(marker or {})})


def read_uploads(text: bytes, prefix: str) -> tuple[list[OpenUpload], OpenUpload | None]:
    """Return a page of open uploads, and after which one the next page begins.

    Raises
    ------
    BadResponse
        If the text is no such page.
    """
    listed = document(text, "ListMultipartUploadsResult", "which uploads are open")
    found = [
        OpenUpload(*(first_text(each, name) for name in ("Key", "UploadId")))
        for each in listed
        if local_name(each) == "Upload"
    ]
    check_page([upload.key for upload in found], prefix, more=False)
    if "true" not in texts(listed, "IsTruncated"):
        return found, None
    names = ("NextKeyMarker", "NextUploadIdMarker")
    return found, OpenUpload(*(first_text(listed, name) for name in names))


def _query(wanted: Mapping[str, str]) -> str:
    """Return parameters in the order of their names, as a signature has them."""
    return urlencode(sorted(wanted.items()), safe="", quote_via=quote)
