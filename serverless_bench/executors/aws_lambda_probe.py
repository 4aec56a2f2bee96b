"""Ask each function of a job what it is before anything is launched.

A function that cannot start, runs other code than this driver or may not do what the job
needs would otherwise be found out by hundreds of launches that nobody hears of again.
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

from serverless_bench.clock import monotonic_ns, wall_ns
from serverless_bench.errors import ExecutorError
from serverless_bench.executors.aws_lambda_client import LambdaClient
from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.findings import Finding, ok
from serverless_bench.executors.remote.launcher import NotLaunchedError
from serverless_bench.executors.remote.probing import NO_PROBE, PROBES_AT_ONCE, tidy
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.target import Target
from serverless_bench.job.workload import open_workload
from serverless_bench.version import __version__
from serverless_bench.worker.claims import PROBE
from serverless_bench.worker.probe import ProbeSpec, code_files

ANSWER_S: Final = 20.0
"""How long a function may take to answer: its start, and a few requests."""
_REFUSED_S: Final = 6.0
"""How long a function may be throttled, or out of reach, until it is given up."""
_LOG_CHARS: Final = 300
_BILLED: Final = re.compile(r'(?:Billed Duration: |"billedDurationMs":\s*)([0-9]+)')
_LAMBDAS: Final = (
    *("START ", "END ", "REPORT ", "INIT_START ", "INIT_REPORT ", "XRAY ", "[WARNING]"),
    *('{"time":', "Traceback (most recent call last)"),
)
"""How lines of the log begin that the function did not write, or that say nothing."""
_OTHER_PROCESSOR: Final = (
    *("cannot open shared object file", "invalid ELF header", "wrong ELF class"),
    "Exec format error",
)
"""What dlopen says of a library for another processor (glibc)."""
_ARCHITECTURES: Final = {"aarch64": "arm64"}
"""What AWS calls processors, where Linux calls them otherwise."""
_DEPLOY: Final = "sam build && sam deploy bring it up to date"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedFunction:
    """What a function says of the environment that answered."""

    name: str
    worker_id: str
    cold: bool
    """Whether the environment is new: it will not count as a cold start of the run."""
    version: str
    code: Mapping[str, str]
    """A short hash of each of its source files."""
    python: str
    machine: str
    memory_mib: int | None
    region: str
    allows_code: bool
    refused: str
    """What it may not do, and why; empty if everything succeeded."""
    requests: Mapping[str, Mapping[str, int]]
    """Billed requests for ``data`` and ``control``, by kind."""
    in_vpc: bool | None
    """As it is configured; None if that may not be read."""
    billed_ms: int
    """As Lambda's report says, or as long as the response took."""

    def to_json(self) -> dict[str, Any]:
        """Return it for ``run.json``."""
        code = "".join(f"{path} {digest}\n" for path, digest in sorted(self.code.items()))
        return {**asdict(self), "code": hashlib.sha256(code.encode()).hexdigest()}


def ask(
    client: LambdaClient, names: Sequence[str], spec: ProbeSpec
) -> tuple[Sequence[ProbedFunction], tuple[str, ...]]:
    """Return what functions say, all asked at once, and the keys that they could not delete.

    Raises
    ------
    ExecutorError
        If one cannot be invoked, or does not come to an answer.
    """
    specs = [replace(spec, number=number) for number in range(len(names))]
    try:
        # Closed before the threads are joined: one of them may wait for minutes.
        with ThreadPoolExecutor(PROBES_AT_ONCE) as threads, closing(client):
            found = list(threads.map(partial(_ask, client), names, specs))
    finally:
        left = tidy(specs)
    return found, left


def answers(
    name: str, region: str | None, target: Target | None, control: Target | None
) -> Iterator[Finding]:
    """Invoke a function once, and say what it is and may do; ``ExecutorInfo.try_out``."""
    spec = ProbeSpec(
        run_id=new_run_id(wall_ns()),
        # The plainest: its code is in every package.
        workload="write",
        target=target,
        control=control,
        needs=() if target is None else ("put", "get"),
    )
    client = LambdaClient(
        region or None, RunProgress(), connections=1, answer_s=ANSWER_S, patient=False
    )
    with closing(client):
        (found,), _ = ask(client, (name,), spec)
    check_functions([found], spec.workload)
    where = {True: ", in a VPC", False: ", in no VPC", None: ""}[found.in_vpc]
    may = "may claim, put and get" if target is not None else "tried in no bucket"
    yield ok(
        f"function {name}",
        f"answers from {found.region}{where}: Python {found.python} on {found.machine}, with the"
        f" code of this sbench; {may}",
    )


def check_functions(
    functions: Iterable[ProbedFunction],
    workload: str,
    *,
    memory_mib: int | None = None,
    architecture: str | None = None,
) -> None:
    """Refuse functions that cannot do what a job needs.

    Parameters
    ----------
    functions
        What they say.
    workload
        Of the job.
    memory_mib, architecture
        What the user says that they have; None for whatever they have.

    Raises
    ------
    ExecutorError
        With one line about the first of them.
    """
    ours = code_files()
    for one in functions:
        unlike = _unlike(one, memory_mib, architecture)
        for problem, hint in chain(unlike, _problems(one, ours, workload)):
            raise ExecutorError(f"function {one.name!r} {problem}", hint=hint)


def _unlike(
    one: ProbedFunction, memory_mib: int | None, architecture: str | None
) -> Iterator[tuple[str, str]]:
    """Yield in what a function is not what the user says."""
    has = _ARCHITECTURES.get(one.machine, one.machine)
    hint = "name another function, or what this one has; a cost would be wrong, too"
    if None not in {memory_mib, one.memory_mib} and memory_mib != one.memory_mib:
        yield f"has {one.memory_mib} MB, and `memory` says {memory_mib}", hint
    if architecture not in {None, has}:
        yield f"runs on {has}, and `arch` says {architecture}", hint


def _problems(
    one: ProbedFunction, ours: Mapping[str, str], workload: str
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a function, and what to do."""
    if stale := [path for path, digest in one.code.items() if ours.get(path) != digest]:
        more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        yield (
            f"runs other code than this sbench {__version__}: {stale[0]}{more} differ",
            f"{_DEPLOY}; {NO_PROBE}",
        )
    if open_workload(workload).runs_code and not one.allows_code:
        yield "runs no code that comes with an event", "deploy it with AllowCode=true"
    if one.refused:
        deletes = (
            "deploy it with AllowDelete=true, or " if one.refused.startswith("delete ") else ""
        )
        yield (
            f"may not do what this job needs: {one.refused}",
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
            hint="others may use the account's concurrency: ReservedConcurrency keeps some for it",
        ) from exc
    took_ms = -(-(monotonic_ns() - began_ns) // 1_000_000)
    log = b64decode(answer.get("LogResult", "")).decode("utf-8", "replace")
    if "FunctionError" in answer:
        raise _failed(name, body, log)
    billed = _BILLED.findall(log)
    billed_ms = int(billed[-1]) if billed else took_ms
    try:
        said = json.loads(body)
        said["code"] = dict(said.pop("files"))
        return ProbedFunction(name=name, billed_ms=billed_ms, in_vpc=in_vpc, **said)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ExecutorError(
            f"function {name!r} does not know the probe: it has another sbench, or none",
            hint=f"{_DEPLOY}; {NO_PROBE}",
        ) from exc


def _failed(name: str, body: bytes, log: str) -> ExecutorError:
    try:
        said = json.loads(body)
        text = f"{said.get('errorType', '')}: {said.get('errorMessage', '')}"
    except (AttributeError, ValueError):
        text = body.decode("utf-8", "replace")
    if any(words in text + log for words in _OTHER_PROCESSOR):
        hint = "its zip was built for another processor: sam build and sam deploy with one template"
    else:
        hint = f"its log has the rest; {_DEPLOY}"
    last = _last_words(log, text)
    more = f"; its log ends: {last}" if last else ""
    return ExecutorError(
        f"function {name!r} cannot start: {' '.join(text.split())}{more}", hint=hint
    )


def _last_words(log: str, known: str) -> str:
    """Return the end of what a function wrote, in one line, without what is known of it."""
    lines = [line.strip().removeprefix("[ERROR] ") for line in log.splitlines()]
    own = [line for line in lines if not line.startswith(_LAMBDAS) and line not in known]
    text = " ".join(" ".join(own[-3:]).split())
    return text if len(text) <= _LOG_CHARS else f"...{text[-_LOG_CHARS:]}"
