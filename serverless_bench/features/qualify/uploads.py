"""Uploads in parts, and the guarantees about them."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from serverless_bench.clients.s3_http import completion, element
from serverless_bench.features.qualify.requests import SentRequest
from serverless_bench.features.qualify.trial import MISSING, StoreTrial, VoidError
from serverless_bench.job.target import MIN_PART_BYTES

_WRONG: Final = '"00000000000000000000000000000000"'

Part = tuple[int, str]
"""Number and entity tag of a part."""


def begin(trial: StoreTrial, name: str, function: int = 0) -> str:
    """Begin an upload, and return the query that names it."""
    request = trial.need(trial.ask("POST", name, function, query="uploads="))
    upload_id = element(request.text, "UploadId")
    trial.lab.uploads[upload_id] = request.key
    return f"uploadId={quote(upload_id, safe='')}"


def part(
    trial: StoreTrial, name: str, upload: str, number: int, body: bytes, function: int = 0
) -> Part:
    """Send a part."""
    query = f"partNumber={number}&{upload}"
    return number, trial.need(trial.ask("PUT", name, function, query=query, body=body)).etag


def complete(
    trial: StoreTrial, name: str, upload: str, parts: Sequence[Part], function: int = 0
) -> SentRequest:
    """Complete an upload, and return the request with the response."""
    return trial.ask("POST", name, function, query=upload, body=completion(parts))


def in_order(trial: StoreTrial) -> None:
    """Send parts from several functions in another order, and read across the boundary."""
    bodies = {1: b"1" * MIN_PART_BYTES, 2: b"2" * MIN_PART_BYTES, 3: b"end"}
    upload = begin(trial, "a")
    numbers = [3, 1, 2]
    sent = trial.together(
        lambda function, _: part(
            trial, "a", upload, numbers[function], bodies[numbers[function]], function
        ),
        range(min(len(numbers), trial.lab.functions)),
    )
    sent += [part(trial, "a", upload, number, bodies[number]) for number in numbers[len(sent) :]]
    trial.need(complete(trial, "a", upload, sorted(sent)))
    whole = b"".join(bodies.values())
    trial.expect(trial.look("a", 1).text == whole, "the object is not its parts in their order")
    first = MIN_PART_BYTES - 2
    across = trial.look("a", 2, headers={"range": f"bytes={first}-{first + 3}"})
    trial.expect(
        across.text in {b"1122", whole}, "a range across two parts has other bytes than the object"
    )
    upload = begin(trial, "b")
    sent = [part(trial, "b", upload, number, bodies[1]) for number in (1, 2)]
    wrong = complete(trial, "b", upload, sent[::-1])
    trial.expect(not wrong.ok, "parts listed in the wrong order are accepted")


def checked(trial: StoreTrial) -> None:
    """Complete uploads with parts that were not sent, or have other entity tags."""
    for name, listed in (("missing", (2, "")), ("tag", (1, _WRONG))):
        upload = begin(trial, name)
        number, etag = part(trial, name, upload, 1, b"part")
        parts = [(listed[0], listed[1] or etag)] if name == "tag" else [(number, etag), (2, etag)]
        request = complete(trial, name, upload, parts)
        problem = f"an upload with a wrong part ({name}) is completed"
        trial.expect(not request.ok, problem)
        trial.expect(trial.look(name, 1).status == MISSING, problem)


def hidden(trial: StoreTrial) -> None:
    """Look for parts before an upload is complete, and after it was aborted."""
    trial.put("old", b"old")
    for name, before in (("new", None), ("old", b"old")):
        upload = begin(trial, name)
        sent = part(trial, name, upload, 1, b"part", 1)
        problem = "parts can be seen before the upload is complete"
        trial.all_see(name, before, problem)
        trial.expect(trial.page(2).names == ["old"], problem)
        trial.need(trial.ask("DELETE", name, query=upload))
        late = complete(trial, name, upload, [sent], 1)
        trial.expect(not late.ok, "a completion after an abort is acknowledged")
        trial.all_see(name, before, "an aborted upload left an object")


def raced(trial: StoreTrial) -> None:
    """Complete several uploads of a key at the same time, and one that is aborted."""
    functions = range(trial.lab.functions)
    bodies = [b"%d" % function * 1000 for function in functions]
    uploads = trial.together(lambda function, _: begin(trial, "a", function))
    parts = trial.together(
        lambda function, _: part(trial, "a", uploads[function], 1, bodies[function], function)
    )
    done = trial.together(
        lambda function, gate: trial.ask(
            "POST",
            "a",
            function,
            query=uploads[function],
            body=completion([parts[function]]),
            gate=gate,
        )
    )
    if not any(request.ok for request in done):
        raise VoidError("no completion succeeds")
    left = {request.text for request in trial.all_look("a")}
    acted = {bodies[request.function] for request in done if request.ok or request.is_open}
    trial.expect(
        left <= acted and len(left) == 1, "after concurrent completions no single one is there"
    )
    upload = begin(trial, "b")
    sent = part(trial, "b", upload, 1, b"part")
    completed, aborted = trial.together(
        lambda function, gate: trial.ask(
            "DELETE" if function else "POST",
            "b",
            function,
            query=upload,
            body=b"" if function else completion([sent]),
            gate=gate,
        ),
        range(2),
    )
    if not (completed.is_open or aborted.is_open):
        problem = "a completion raced by an abort is answered otherwise than it ended"
        trial.all_see("b", b"part" if completed.ok else None, problem)
