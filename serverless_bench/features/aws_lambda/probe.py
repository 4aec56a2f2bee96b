"""Probe each function of a job before the launch.

Otherwise a function that cannot start, runs other code than this driver or lacks permissions would
only be noticed after hundreds of launches without a record.
"""

import hashlib
import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.base.errors import ExecutorError
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.aws.client import wait_hint
from serverless_bench.features.aws_lambda.client import LambdaClient
from serverless_bench.features.doctor.findings import Finding, ok, warn
from serverless_bench.features.remote.claims import PROBE
from serverless_bench.features.remote.launcher import NotLaunchedError
from serverless_bench.features.remote.probe import (
    NO_PROBE,
    PROBES_AT_ONCE,
    ProbeSpec,
    code_files,
    tidy,
)
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.target import Target
from serverless_bench.job.workload import open_workload
from serverless_bench.version import __version__

ANSWER_S: Final = 20.0
"""Time limit for a response of a function: its start, and a few requests."""
_REFUSED_S: Final = 6.0
"""Time limit for retries while a function is throttled or unreachable."""
_LOG_CHARS: Final = 300
_LAMBDAS: Final = (
    *("START ", "END ", "REPORT ", "INIT_START ", "INIT_REPORT ", "XRAY ", "[WARNING]"),
    *('{"time":', "Traceback (most recent call last)"),
)
"""Prefixes of log lines that the function did not write, or that are irrelevant."""
_OTHER_ARCHITECTURE: Final = (
    *("cannot open shared object file", "invalid ELF header", "wrong ELF class"),
    "Exec format error",
)
"""Error messages of dlopen for a library of another architecture (glibc)."""
_ARCHITECTURES: Final = {"aarch64": "arm64"}
"""AWS's names of architectures, by Linux's name where it differs."""
_DEPLOY: Final = "run sam build && sam deploy to update it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedFunction:
    """Description of the environment that answered the probe."""

    name: str
    worker_id: str
    cold: bool
    """Whether the environment is new: the run will not count a cold start for it."""
    version: str
    code: Mapping[str, str]
    """Short hash by source file."""
    python: str
    machine: str
    memory_mib: int | None
    region: str
    allows_code: bool
    refused: str
    """Denied operation and reason; empty if all attempts succeeded."""
    requests: Mapping[str, Mapping[str, int]]
    """Billed requests for ``data`` and ``control``, by kind."""
    in_vpc: bool | None
    """From the configuration; None if reading it is denied."""
    billed_ms: int
    """Billed duration in Lambda's report, or the response time without a report."""

    def to_json(self) -> dict[str, Any]:
        """Return the description for ``run.json``."""
        code = "".join(f"{path} {digest}\n" for path, digest in sorted(self.code.items()))
        return {**asdict(self), "code": hashlib.sha256(code.encode()).hexdigest()}


def ask(
    client: LambdaClient, names: Sequence[str], spec: ProbeSpec
) -> tuple[Sequence[ProbedFunction], tuple[str, ...]]:
    """Probe functions concurrently; return their answers and the keys they could not delete.

    Raises
    ------
    ExecutorError
        If a function cannot be invoked, or does not answer.
    """
    specs = [replace(spec, number=number) for number in range(len(names))]
    try:
        # Closed before the threads are joined: a thread may wait for minutes.
        with ThreadPoolExecutor(PROBES_AT_ONCE) as threads, closing(client):
            functions = list(threads.map(partial(_ask, client), names, specs))
    finally:
        remaining = tidy(specs)
    return functions, remaining


def answers(
    name: str, region: str | None, target: Target | None, control: Target | None
) -> Iterator[Finding]:
    """Probe a function once, and yield what it is and may do; see ``ExecutorInfo.try_out``."""
    spec = ProbeSpec(
        run_id=new_run_id(wall_ns()),
        # The simplest workload: every package contains its code.
        workload="write",
        target=target,
        control=control,
        needs=() if target is None else ("put", "get"),
    )
    progress = RunProgress()
    client = LambdaClient(region or None, progress, connections=1, answer_s=ANSWER_S, patient=False)
    with closing(client):
        (function,), _ = ask(client, (name,), spec)
    for note in progress.notes:
        yield warn(f"function {name}", note, "the next call does not wait")
    check_functions([function], spec.workload)
    where = {True: ", in a VPC", False: ", in no VPC", None: ""}[function.in_vpc]
    may = "may claim, put and get" if target is not None else "tried in no bucket"
    yield ok(
        f"function {name}",
        f"answers from {function.region}{where}: Python {function.python} on {function.machine},"
        f" with the code of this sbench; {may}",
    )


def check_functions(
    functions: Iterable[ProbedFunction],
    workload: str,
    *,
    memory_mib: int | None = None,
    architecture: str | None = None,
) -> None:
    """Check that functions can do what a job needs.

    Parameters
    ----------
    functions
        Answers to the probe.
    workload
        Workload of the job.
    memory_mib, architecture
        Values expected by the user; None to accept any.

    Raises
    ------
    ExecutorError
        For the first problem of the first affected function.
    """
    own_files = code_files()
    for function in functions:
        unlike = _unlike(function, memory_mib, architecture)
        for problem, hint in chain(unlike, _problems(function, own_files, workload)):
            raise ExecutorError(f"function {function.name!r} {problem}", hint=hint)


def _unlike(
    function: ProbedFunction, memory_mib: int | None, architecture: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the differences between a function and the user's settings."""
    has = _ARCHITECTURES.get(function.machine, function.machine)
    hint = "name another function, or the values of this one; its cost would be wrong, too"
    if None not in {memory_mib, function.memory_mib} and memory_mib != function.memory_mib:
        yield f"has {function.memory_mib} MB, and `memory` says {memory_mib}", hint
    if architecture not in {None, has}:
        yield f"runs on {has}, and `arch` says {architecture}", hint


def _problems(
    function: ProbedFunction, own_files: Mapping[str, str], workload: str
) -> Iterator[tuple[str, str]]:
    """Yield the problems of a function, with hints."""
    if stale := [path for path, digest in function.code.items() if own_files.get(path) != digest]:
        others = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        yield (
            f"runs other code than this sbench {__version__}: {stale[0]}{others} differ",
            f"{_DEPLOY}; {NO_PROBE}",
        )
    if isinstance(open_workload(workload), RunsCode) and not function.allows_code:
        yield "rejects functions that are sent with the event", "deploy it with AllowCode=true"
    if function.refused:
        deletes = (
            "deploy it with AllowDelete=true, or " if function.refused.startswith("delete ") else ""
        )
        yield (
            f"lacks permissions that this job needs: {function.refused}",
            f"{deletes}check its role, and the bucket's policy and region; {NO_PROBE}",
        )


def _ask(client: LambdaClient, name: str, spec: ProbeSpec) -> ProbedFunction:
    payload = json.dumps({PROBE: asdict(spec)}).encode()
    request = {
        "FunctionName": name,
        "InvocationType": "RequestResponse",
        "LogType": "Tail",
        "Payload": payload,
    }
    configured = client.configuration(name)
    in_vpc = bool(configured.get("VpcConfig", {}).get("SubnetIds")) if configured else None
    began_ns = monotonic_ns()
    try:
        answer, _ = client.invoke(lambda: request, timeout_s=_REFUSED_S)
        body = answer["Payload"].read()
    except (NotLaunchedError, boto.BotoCoreError) as exc:
        raise ExecutorError(
            f"function {name!r} does not answer: {exc}",
            hint=wait_hint(str(exc)),
        ) from exc
    took_ms = -(-(monotonic_ns() - began_ns) // 1_000_000)
    log = b64decode(answer.get("LogResult", "")).decode("utf-8", "replace")
    if "FunctionError" in answer:
        raise _failed(name, body, log)
    billed = re.findall(r'(?:Billed Duration: |"billedDurationMs":\s*)([0-9]+)', log)
    billed_ms = int(billed[-1]) if billed else took_ms
    try:
        content = json.loads(body)
        content["code"] = dict(content.pop("files"))
        return ProbedFunction(name=name, billed_ms=billed_ms, in_vpc=in_vpc, **content)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ExecutorError(
            f"function {name!r} does not support the probe: its sbench is missing or outdated",
            hint=f"{_DEPLOY}; {NO_PROBE}",
        ) from exc


def _failed(name: str, body: bytes, log: str) -> ExecutorError:
    try:
        content = json.loads(body)
        text = f"{content.get('errorType', '')}: {content.get('errorMessage', '')}"
    except (AttributeError, ValueError):
        text = body.decode("utf-8", "replace")
    if any(words in text + log for words in _OTHER_ARCHITECTURE):
        hint = (
            "its zip was built for another architecture: sam build and sam deploy with one template"
        )
    else:
        hint = f"its log has the rest; {_DEPLOY}"
    last = _last_words(log, text)
    log_end = f"; its log ends: {last}" if last else ""
    return ExecutorError(
        f"function {name!r} cannot start: {' '.join(text.split())}{log_end}", hint=hint
    )


def _last_words(log: str, error: str) -> str:
    """Return the last lines written by a function, on one line, without the text of its error."""
    lines = [line.strip().removeprefix("[ERROR] ") for line in log.splitlines()]
    written = [line for line in lines if not line.startswith(_LAMBDAS) and line not in error]
    text = " ".join(" ".join(written[-3:]).split())
    return text if len(text) <= _LOG_CHARS else f"...{text[-_LOG_CHARS:]}"
