from serverless_bench.features.minio.client import MinioClient


def test_parts_of_the_library_hide_requests() -> None:
    assert MinioClient.info.attempts == "exact"
    assert MinioClient.info.with_options([("part_mb", "16")]).attempts == "hidden"
