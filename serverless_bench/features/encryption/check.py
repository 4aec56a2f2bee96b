"""The check of a job that asks for an encryption."""

from collections.abc import Iterator

from serverless_bench.clients import CLIENTS
from serverless_bench.driver.policy import DriverPolicy
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.types import wrong


class EncryptionCheck(DriverPolicy):
    """Rejects libraries that send no header for it, and buckets that ignore it."""

    def check(self, job: JobSpec) -> None:
        """Raise an error for a job that the setting does not suit."""
        for problem, hint in _problems(job):
            raise wrong("sse", problem, hint=hint)


def _problems(job: JobSpec) -> Iterator[tuple[str, str]]:
    target = job.target
    if target.protocol is not StoreProtocol.S3:
        yield f"is about S3, not {target.protocol}://", "leave it out"
    if is_directory_bucket(target.bucket):
        yield "does not apply: a directory bucket has one encryption", "leave it out"
    if job.load.library is not None:
        yield "is nothing that array libraries send", "leave it out, or `workload` write and read"
    if not CLIENTS.load(target.client).info.encrypts:
        yield f"is nothing that `client` {target.client} sends", "wire and boto3 send it"


CHECK = EncryptionCheck()
