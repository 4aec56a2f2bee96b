"""Addresses of stores: what an endpoint may be, and what it may not."""

from urllib.parse import urlsplit

from serverless_bench.errors import UsageError


def parse_endpoint(text: str) -> str:
    """Return the endpoint that ``text`` names, without a slash at its end.

    Raises
    ------
    UsageError
        If it is anything but ``http(s)://host[:port]``: clients would leave the rest out, or
        ask for other objects, each in its own way.
    """
    hint = "an endpoint is http(s)://host[:port]"
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as exc:
        raise UsageError(f"`endpoint_url` {text!r} is not a URL: {exc}", hint=hint) from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise UsageError(f"`endpoint_url` {text!r} is not a URL of a store", hint=hint)
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "`endpoint_url` has a user or a password in it",
            hint="credentials go into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        )
    extra = [
        name
        for name, there in (
            ("a path", parts.path.strip("/")),
            ("a query", "?" in text),
            ("a fragment", "#" in text),
        )
        if there
    ]
    if extra:
        raise UsageError(
            f"`endpoint_url` {text!r} has {' and '.join(extra)}",
            hint=f"{hint}; the bucket goes into `bucket`, and what keys begin with into `prefix`",
        )
    return f"{parts.scheme}://{parts.netloc}"
