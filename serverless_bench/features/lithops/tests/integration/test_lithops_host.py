"""The process that runs Lithops ends with its driver, whenever that dies, and leaves no files."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from serverless_bench.base.clock import wall_ns
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from tests.commands.processes import PATIENCE_S

ORDER = {"concurrency": 1, "timeout_s": 10, "event_age_s": 10, "keys": False}


@pytest.mark.parametrize("order", ["", json.dumps(ORDER) + "\n"], ids=["at once", "with an order"])
def test_a_host_without_its_driver_ends_silently(tmp_path: Path, order: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    nobody, answers = os.pipe()
    os.close(nobody)
    host = subprocess.run(
        [sys.executable, "-P", "-m", "serverless_bench.features.lithops.host"],
        input=order.encode(),
        stdout=answers,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch), "HOME": str(tmp_path)},
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(answers)
    assert (host.returncode, host.stderr) == (0, b"")
    assert list(scratch.iterdir()) == []


def test_a_host_without_room_for_its_files_says_so(tmp_path: Path) -> None:
    host = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_ROOM],
        input=json.dumps(ORDER).encode() + b"\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (host.returncode, host.stderr) == (0, b"")
    assert "No usable temporary directory" in json.loads(host.stdout)["problem"]


WITHOUT_ROOM = """
import tempfile
from serverless_bench.features.lithops import host
tempfile._candidate_tempdir_list = lambda: []
host.main()
"""


ANSWERS = """
import json, os, sys
from queue import SimpleQueue
from lithops import FunctionExecutor
from serverless_bench.features.lithops.cloud import _tell_refusals
from serverless_bench.features.remote.delivery import answer_delivery

settings = {"backend": "localhost", "storage": "localhost", "data_cleaner": False}
local = {"version": 1, "runtime": sys.executable}
executor = FunctionExecutor(config={"lithops": settings, "localhost": local}, log_level=None)
probe = {"probe": {"run_id": "run", "needs": []}}
events = [{"event": event, "remaining_s": 60} for event in (json.load(sys.stdin), probe)]
answering = executor.map(answer_delivery, events, include_modules=None)
raising = executor.map(json.loads, ["{"], include_modules=None)
calls, told = SimpleQueue(), []
for index, future in enumerate([*answering, *raising]):
    calls.put(({"index": index, "launch": 0}, future))

class Driver:
    def send(self, refused):
        told.append(refused)
        if len(told) == 2:
            print(json.dumps(told), flush=True)
            os._exit(0)

_tell_refusals(calls, Driver())
"""


def test_what_functions_refuse_is_told_and_not_unpickled(tmp_path: Path) -> None:
    target = Target(bucket="b", endpoint_url="http://127.0.0.1:1")
    job = JobSpec(workload="write", target=target, control=target, number=1, size=1)
    (event,) = invocation_specs(job, run_id="run", created_ns=wall_ns())
    nobody = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    answers = subprocess.run(
        [sys.executable, "-P", "-c", ANSWERS],
        input=json.dumps(asdict(event)),
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | nobody,
        timeout=PATIENCE_S,
        check=False,
    )
    assert answers.returncode == 0, answers.stderr
    output = json.loads(answers.stdout.splitlines()[-1])
    refused, raised = sorted(output, key=lambda document: document["index"])
    cause = "AccessDenied: no credentials: set AWS_ACCESS_KEY_ID or AWS_PROFILE"
    assert refused == {"index": 0, "launch": 0, "cause": cause, "permanent": True}
    assert raised["index"] == 2
    assert raised["cause"].startswith("its call by Lithops failed: json.decoder: JSONDecodeError: ")


MINIO = {"endpoint": "http://minio", "access_key_id": "AK", "secret_access_key": "SK"}
AZURE = {"storage_account_name": "mine", "storage_account_key": "K", "location": "x"}


@pytest.mark.parametrize(
    ("backend", "storage", "sections", "key"),
    [
        ("k8s", "minio", {"minio": MINIO}, "minio.access_key_id"),
        (
            "code_engine",
            "aws_s3",
            {"code_engine": {"iam_api_key": "K"}, "aws_s3": {"region": "r"}},
            "code_engine.iam_api_key",
        ),
        ("azure_functions", "azure_storage", {"azure_storage": AZURE}, "storage_account_key"),
        ("k8s", "aws_s3", {"azure": {"connection_string": "K"}}, "azure.connection_string"),
        ("k8s", "aws_s3", {"azure": {"sas_token": "K"}}, "azure.sas_token"),
        ("k8s", "aws_s3", {"rabbitmq": {"amqp_url": "amqp://me:K@h"}}, "rabbitmq.amqp_url"),
        ("k8s", "aws_s3", {"redis": {"host": "h", "sasl": "x", "port": 1}}, ""),
    ],
)
def test_keys_go_out_only_when_the_user_says_so(
    tmp_path: Path, backend: str, storage: str, sections: dict[str, object], key: str
) -> None:
    """Half of Lithops' backends demand them in the configuration, and it is in every call."""
    config = {"lithops": {"backend": backend, "storage": storage}, **sections}
    named = {"LITHOPS_CONFIG": json.dumps(config), "HOME": str(tmp_path)}
    for keys in (False, True):
        host = subprocess.run(
            [sys.executable, "-P", "-m", "serverless_bench.features.lithops.host"],
            input=json.dumps({**ORDER, "keys": keys}).encode() + b"\n",
            capture_output=True,
            env={**os.environ, **named},
            timeout=PATIENCE_S,
            check=False,
        )
        document = json.loads(host.stdout)
        if keys or not key:
            assert document == {"backend": backend}
        else:
            assert document["problem"].startswith("the Lithops configuration holds a key: ")
            assert document["problem"].endswith(key)
            assert "`lithops_keys` lets it go" in document["hint"]


LIMITS = """
import json, sys
from serverless_bench.features.lithops.host import _configured

order = {"concurrency": 1800, "timeout_s": 905, "event_age_s": 60, "keys": False}
for config in json.load(sys.stdin):
    config, options = _configured(config, order)
    names = ("max_workers", "worker_processes", "runtime", "runtime_timeout")
    settings = [options.get(name) for name in names]
    print(json.dumps([config["lithops"]["backend"], *settings]))
"""


def test_limits_and_backend_are_those_that_lithops_would_use() -> None:
    cap, runtime = {"max_workers": 4}, {"runtime": "mine"}
    cases: list[tuple[dict[str, object], list[object]]] = [
        ({"lithops": {"backend": "aws_ec2"}, "aws_ec2": cap}, ["aws_ec2", 4, None, None, 905]),
        ({"lithops": {"mode": "standalone"}, "aws_ec2": cap}, ["aws_ec2", 4, None, None, 905]),
        ({"lithops": {"backend": "k8s"}, "k8s": cap}, ["k8s", 4, None, None, 905]),
        ({"lithops": {"backend": "aws_batch"}}, ["aws_batch", 1800, None, None, 905]),
        ({"lithops": {"mode": "standalone"}}, ["aws_ec2", 100, None, None, 905]),
        (
            {"lithops": {"mode": "standalone"}, "standalone": {"backend": "vm"}, "vm": cap},
            ["vm", 4, None, None, 905],
        ),
        (
            {"lithops": {"mode": "serverless"}, "aws_lambda": cap},
            ["aws_lambda", 1800, 1, None, 900],
        ),
        ({"aws_lambda": runtime}, ["aws_lambda", 1800, 1, None, 900]),
        ({"lithops": {"backend": "gcp_functions"}}, ["gcp_functions", 1800, 1, None, 540]),
        ({"lithops": {"backend": "oracle_f"}}, ["oracle_f", 1800, 1, None, 300]),
        (
            {"lithops": {"mode": "localhost"}, "localhost": runtime},
            ["localhost", None, 1800, "mine", None],
        ),
    ]
    answers = subprocess.run(
        [sys.executable, "-P", "-c", LIMITS],
        input=json.dumps([config for config, _ in cases]),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert answers.returncode == 0, answers.stderr
    assert [*map(json.loads, answers.stdout.splitlines())] == [limits for _, limits in cases]


def test_the_guard_against_sent_keys_knows_a_backend_that_is_not_named(tmp_path: Path) -> None:
    config = {"lithops": {"mode": "serverless"}, "aws": {"access_key_id": "AK"}}
    named = {"LITHOPS_CONFIG": json.dumps(config), "HOME": str(tmp_path)}
    host = subprocess.run(
        [sys.executable, "-P", "-m", "serverless_bench.features.lithops.host"],
        input=json.dumps(ORDER).encode() + b"\n",
        capture_output=True,
        env={**os.environ, **named},
        timeout=PATIENCE_S,
        check=False,
    )
    problem = json.loads(host.stdout)["problem"]
    assert problem == "the Lithops configuration holds a key: aws.access_key_id"


QUEUED = """
import json, os, sys
from lithops import FunctionExecutor
from serverless_bench.features.lithops import cloud
from serverless_bench.features.lithops.cloud import _delete_all, has_ended
from tests.commands.processes import until

cloud._SETTLE_S = 0
settings = {"backend": "localhost", "storage": "localhost", "data_cleaner": False}
local = {"version": 1, "runtime": sys.executable}
executor = FunctionExecutor(config={"lithops": settings, "localhost": local}, log_level=None)
os.mkfifo("fifo")
ended, running, queued = futures = [
    *executor.map(json.loads, ["1"], include_modules=None),
    *executor.map(lambda path: open(path).read(), [os.path.abspath("fifo")]),
    *executor.map(json.loads, ["3"], include_modules=None),
]
storage = executor.internal_storage.storage
until(lambda: has_ended(ended))
_delete_all(executor, futures)
if not storage.list_keys(storage.bucket, "lithops.jobs"):
    os.write(2, b"the function of the queued call is gone")
    os._exit(1)
with open("fifo", "w") as fifo:
    fifo.write("2")
print(running.result(), queued.result())
_delete_all(executor, futures)
print(storage.list_keys(storage.bucket, "lithops.jobs"), flush=True)
os._exit(0)
"""


def test_calls_that_are_queued_still_find_their_function(tmp_path: Path) -> None:
    answers = subprocess.run(
        [sys.executable, "-c", QUEUED],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).parents[5]),
        },
        timeout=PATIENCE_S,
        check=False,
    )
    assert answers.returncode == 0, answers.stderr
    assert answers.stdout.splitlines() == ["2 3", "[]"]
