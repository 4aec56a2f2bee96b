"""Names of objects that a file system, a URL or XML would rather not have."""

from botocore.exceptions import ClientError

from tests.probes.place import BODY, Place, answer, error


def stored(at: Place, *names: str) -> str:
    """Store objects under these names, read them, and look how they are listed."""
    bodies = {name: b"%d" % number for number, name in enumerate(names)}
    try:
        for name, body in bodies.items():
            at.put(name, body)
        if bodies != {name: at.bytes_of(name) for name in bodies}:
            return "other bytes"
    except ClientError as exc:
        return error(exc)
    return "kept" if sorted(at.names()) == sorted(names) else "listed under other names"


def odd(at: Place) -> str:
    return stored(at, "a b+c/d~e%20?&=\u00fc.7", "<&>\"'", "#;:@!$*()|^{}[]`,")


def backslash(at: Place) -> str:
    return stored(at, "a\\b")


def control(at: Place) -> str:
    return stored(at, "a\x01b", "line\nfeed")


def normal_form(at: Place) -> str:
    """Use one letter in two normal forms of Unicode."""
    return stored(at, "\u00e9", "e\u0301")


def both(at: Place) -> str:
    return stored(at, "a", "a/b")


def empty_part(at: Place) -> str:
    return stored(at, "a//b", "a/b")


def dots(at: Place) -> str:
    return stored(at, "a/./b", "a/b")


def double_dots(at: Place) -> str:
    return stored(at, "a/../b", "b")


def slash_at_the_end(at: Place) -> str:
    return stored(at, "a/")


def long_part(at: Place) -> str:
    """Use more than a file's name may have."""
    return stored(at, "x" * 300)


def longest(at: Place) -> str:
    return stored(at, filled(at, 1024))


def too_long(at: Place) -> str:
    return answer(lambda: at.s3.put_object(**at.key(filled(at, 1025)), Body=BODY))


def filled(at: Place, size: int) -> str:
    """Return a name whose key has this number of bytes, in parts of at most 99."""
    return (("y" * 99 + "/") * 20)[: size - len(at.prefix)]
