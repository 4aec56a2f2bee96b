"""Keys of the AWS configuration for child processes."""

from collections.abc import Mapping

from serverless_bench.clients.environment import lasting_keys as lasting_keys


def keys_of_the_moment() -> Mapping[str, str | None] | None:
    """Return keys by their names in botocore's metadata, or an ``error``; None without keys."""
    from botocore.exceptions import BotoCoreError

    from serverless_bench.clients.aws_credentials import AwsSession

    try:
        credentials = AwsSession().get_credentials()
        if credentials is None:
            return None
        frozen = credentials.get_frozen_credentials()
    except BotoCoreError as exc:
        return {"error": str(exc)}
    return {
        "access_key": frozen.access_key,
        "secret_key": frozen.secret_key,
        "token": frozen.token,
    }
