"""The part of the clients' contract that moves no bytes: head, list, delete, copy."""

from serverless_bench.clients.base import Client
from serverless_bench.job.target import Target
from serverless_bench.testing.client_parts import (
    ClientFixtures,
    check_not_found,
    check_status,
    content,
    new_meter,
)
from serverless_bench.testing.reference import open_reference

ODD = "a b+c/d~e%20?&=\u00fc.7"
"""A key that has to be escaped in a URL, in XML or in both."""


def store(target: Target, *names: str, size: int = 10) -> list[str]:
    """Write objects without the client under test, and return their keys, sorted."""
    keys = sorted(f"{target.prefix}{name}" for name in names)
    for key in keys:
        open_reference(target).put(key, content(key, size))
    return keys


def bytes_of(target: Target, key: str) -> bytes:
    """Return what is stored at a key."""
    return open_reference(target).get(key)


def stored(target: Target) -> list[str]:
    """Return the keys below the target's prefix."""
    return open_reference(target).keys(target.prefix)


class KeyContract(ClientFixtures):
    """Each test is skipped for a client that does not declare its operation."""

    def test_head_tells_the_size(self, client: Client, target: Target) -> None:
        self.need(target, "head")
        [key] = store(target, "object", size=12_345)
        meter = new_meter()
        assert client.head(key, meter) == 12_345
        check_status(client, meter.status, 200)
        assert meter.bytes == 0

    def test_head_of_a_missing_object_is_not_found(
        self, client: Client, target: Target, key: str
    ) -> None:
        self.need(target, "head")
        check_not_found(client, lambda meter: client.head(key, meter))

    def test_a_listing_is_sorted_and_complete(self, client: Client, target: Target) -> None:
        self.need(target, "list")
        keys = store(target, ODD, "2", "10", "deep/er/3")
        meter = new_meter()
        assert client.list_keys(target.prefix, "", meter) == (keys, False)
        check_status(client, meter.status, 200)
        assert meter.bytes == 0

    def test_a_listing_goes_on_behind_a_key(self, client: Client, target: Target) -> None:
        self.need(target, "list")
        keys = store(target, "1", "2", "3")
        assert client.list_keys(target.prefix, keys[0], new_meter()) == (keys[1:], False)

    def test_a_listing_of_nothing_is_empty(self, client: Client, target: Target) -> None:
        self.need(target, "list")
        assert client.list_keys(f"{target.prefix}none/", "", new_meter()) == ([], False)

    def test_a_prefix_is_no_directory(self, client: Client, target: Target) -> None:
        self.need(target, "list")
        keys = store(target, "ab1", "ab2", "b")
        assert client.list_keys(f"{target.prefix}ab", "", new_meter()) == (keys[:2], False)

    def test_delete_removes_one_object(self, client: Client, target: Target) -> None:
        self.need(target, "delete")
        gone, kept = store(target, ODD, "b")
        meter = new_meter()
        client.delete(gone, meter)
        assert stored(target) == [kept]
        check_status(client, meter.status, 200, 204)

    def test_deleting_what_is_gone_is_no_error(
        self, client: Client, target: Target, key: str
    ) -> None:
        self.need(target, "delete")
        client.delete(key, new_meter())

    def test_many_are_deleted_at_once(self, client: Client, target: Target) -> None:
        self.need(target, "delete_many")
        keys = store(target, ODD, "b&<c>\"'", "d", "e")
        meter = new_meter()
        client.delete_many([*keys[:3], f"{target.prefix}never-was"], meter)
        assert stored(target) == keys[3:]
        check_status(client, meter.status, 200)

    def test_a_copy_has_the_same_bytes(self, client: Client, target: Target) -> None:
        self.need(target, "copy")
        [source] = store(target, ODD, size=54_321)
        copied = f"{target.prefix}z {ODD}"
        meter = new_meter()
        client.copy(source, copied, meter)
        assert bytes_of(target, copied) == content(source, 54_321)
        check_status(client, meter.status, 200)

    def test_a_copy_of_nothing_is_not_found(self, client: Client, target: Target) -> None:
        self.need(target, "copy")
        source, copied = f"{target.prefix}none", f"{target.prefix}copy"
        check_not_found(client, lambda meter: client.copy(source, copied, meter))
