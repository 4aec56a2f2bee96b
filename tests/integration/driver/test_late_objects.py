"""`sbench clean` and a store that lists deleted objects, or receives an object late."""

from dataclasses import replace
from pathlib import Path

from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.driver.boto import open_s3
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import load_run
from tests.commands.command import Done, Sbench
from tests.matrix.proxy import Proxy, Refusal, passes, proxy_of, s3_refusal
from tests.stores.servers import KEYS, credentials

BUCKET = "any"


def ran(directory: Path, proxy: Proxy, *command: str | int) -> tuple[Sbench, Path]:
    """Return the command, and the directory of a run of eight objects through a proxy."""
    sbench = Sbench(directory, {**KEYS, "AWS_ENDPOINT_URL": proxy.url})
    done = sbench(*command, "--bucket", BUCKET, "--number", 2, "--objects", 4, "--name", "r")
    assert done.code == 0, done
    return sbench, directory / "sbench-runs" / "r"


def cleaned_with_an_old_listing(directory: Path, *command: str | int) -> Done:
    """Return the output of `clean` if the store lists objects that it has deleted already."""
    with serving(LoopbackSettings(strict=True)) as store, proxy_of(store.endpoint_url) as proxy:
        sbench, path = ran(directory, proxy, *command)
        entries = "".join(
            f"<Contents><Key>{key}</Key><Size>9</Size></Contents>"
            for key in load_run(path).ledger()
        )
        end = "<IsTruncated>false</IsTruncated></ListBucketResult>"
        listing = Refusal(200, f"<ListBucketResult>{entries}{end}".encode())
        proxy.rule = lambda method, path: listing if "list-type=2" in path else None
        return sbench("clean", path)


def test_a_listing_may_be_older_than_the_deletion(tmp_path: Path) -> None:
    done = cleaned_with_an_old_listing(tmp_path, "write", "--size", "4KiB")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["deleted 8 objects, aborted 0 uploads"]


def test_keys_that_all_launches_share_are_of_no_later_launch(tmp_path: Path) -> None:
    done = cleaned_with_an_old_listing(tmp_path, "conditional", "--pattern", "claim")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["deleted 4 objects, aborted 0 uploads"]


def test_an_upload_that_was_completed_and_answered_with_an_error_is_deleted(
    tmp_path: Path,
) -> None:
    with (
        serving(LoopbackSettings(strict=True)) as store,
        proxy_of(store.endpoint_url) as proxy,
        credentials(KEYS),
    ):
        lost = replace(s3_refusal(500, "InternalError"), performed=True)
        proxy.rule = lambda method, path: (
            lost if (method, "uploadId=" in path) == ("POST", True) else None
        )
        sbench = Sbench(tmp_path, {**KEYS, "AWS_ENDPOINT_URL": proxy.url})
        done = sbench(
            *("write", "--bucket", BUCKET, "--number", 1, "--size", "11MiB", "--name", "r"),
            *("--part-size", "5MiB", "--retries", 1),
        )
        assert done.code == ExitCode.INCOMPLETE, done
        path = tmp_path / "sbench-runs" / "r"
        (key,) = load_run(path).ledger()
        assert load_run(path).keys() == []
        s3 = open_s3(Target(bucket=BUCKET, endpoint_url=store.endpoint_url, region="us-east-1"))
        assert s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"] == 11 << 20
        proxy.rule = passes
        assert sbench("clean", path).out.splitlines() == ["deleted 1 object, aborted 0 uploads"]
        assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


def test_an_object_written_during_the_deletion_is_deleted_too(tmp_path: Path) -> None:
    with (
        serving(LoopbackSettings(strict=True)) as store,
        proxy_of(store.endpoint_url) as proxy,
        credentials(KEYS),
    ):
        sbench, path = ran(tmp_path, proxy, "write", "--size", "4KiB")
        s3 = open_s3(Target(bucket=BUCKET, endpoint_url=store.endpoint_url, region="us-east-1"))
        key = load_run(path).ledger()[0]
        late = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()

        def writes(method: str, path: str) -> None:
            del method
            if "list-type=2" in path:
                s3.put_object(Bucket=BUCKET, Key=key, Body=late)

        proxy.rule = writes
        done = sbench("clean", path)
        proxy.rule = lambda method, path: None
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines() == ["deleted 9 objects, aborted 0 uploads"]
        assert "Contents" not in s3.list_objects_v2(Bucket=BUCKET)
