"""Unmodified Lithops, with its aws_lambda backend, on the Lambda host."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clouds.lambda_hosts import running_host
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import Server

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")

JOB = """
import io, json, os, sys, zipfile
import boto3
import lithops
from botocore.httpsession import URLLib3Session

endpoint = os.environ["AWS_ENDPOINT_URL_LAMBDA"]

class Here(URLLib3Session):
    # Lithops spells out the address that it invokes; everything else heeds the variables.
    def send(self, request):
        request.url = request.url.replace(f"https://{backend.host}", endpoint)
        return super().send(request)

empty = io.BytesIO()
zipfile.ZipFile(empty, "w").close()
version = lithops.__version__.replace(".", "")
python = f"{sys.version_info.major}{sys.version_info.minor}"
boto3.client("lambda").publish_layer_version(
    LayerName=f"lithops_v{version}_host_default-runtime-v{python}_layer",
    Content={"ZipFile": empty.getvalue()},
)
executor = lithops.FunctionExecutor(
    config={
        "lithops": {
            "backend": "aws_lambda", "storage": "aws_s3", "monitoring_interval": 0.2,
            "data_cleaner": False, "telemetry": False,
        },
        "aws": {"region": "us-east-1"},
        "aws_lambda": {
            "execution_role": "arn:aws:iam::123456789012:role/worker",
            "runtime_memory": 512, "runtime_timeout": 60,
        },
        "aws_s3": {"storage_bucket": sys.argv[1]},
    },
    log_level="ERROR",
)
backend = executor.compute_handler.backend
backend.session = Here()

def work(x):
    import os
    return x * x, os.environ["AWS_LAMBDA_FUNCTION_NAME"]

done = executor.get_result(
    executor.map(work, range(10)), show_progressbar=False, wait_dur_sec=0.1
)
backend.clean()
left = boto3.client("lambda").list_functions()["Functions"]
print(json.dumps({"done": done, "left": [f["FunctionName"] for f in left]}))
"""


@pytest.mark.full  # CI kills drivers of such maps
def test_a_map_of_ten_calls(embedded: Server, tmp_path: Path) -> None:
    environment = {**embedded.environment, "AWS_ENDPOINT_URL_S3": embedded.endpoint_url}
    with running_host(environment, ["--share-packages"]) as host:
        done = subprocess.run(
            [sys.executable, "-c", JOB, embedded.bucket],
            cwd=tmp_path,
            env={**os.environ, **host.environment, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        status = host.status()
    document = json.loads(done.stdout.splitlines()[-1])
    assert [value for value, _ in document["done"]] == [x * x for x in range(10)]
    assert len({name for _, name in document["done"]}) == 1
    assert document["left"] == ["sbench-worker"]
    assert status["succeeded"] >= 11  # with the call that requests the installed packages
