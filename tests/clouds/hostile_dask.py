"""Hostile parts of a Dask cluster; Dask preloads this file into its workers or its scheduler.

Each sends a payload that runs a program in the process that unpickles it, and the program logs that
process. The file named by ``SBENCH_TEST_ATTACK`` selects the attack, so that it can change.
"""

import json
import os
import pickle
from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from distributed import Scheduler, Worker, worker_state_machine
from distributed.protocol.serialize import Serialize, ToPickle

from serverless_bench.features.dask import worker as dask_worker

TOLD = Path(os.environ["SBENCH_TEST_ATTACK"])
RAN = TOLD.with_suffix(".ran")
ESCAPE = "\x1b[31mprinted by the cluster\x1b[0m"


class Evil:
    """Runs a program in the process that unpickles it."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"(tr '\\0' ' ' < /proc/$PPID/cmdline; echo) >> {RAN}",)


class EvilError(Exception):
    """The payload as an exception of a function."""

    __reduce__ = Evil.__reduce__


EVIL = pickle.dumps(Evil())


class EvilTypes:
    """Replaces ``pickle`` when a worker sends the type of a result."""

    @staticmethod
    def dumps(_: object) -> bytes:
        return EVIL


def raise_evil(*_: object, **__: object) -> None:
    raise EvilError


async def answer_evil(*_: object) -> Evil:
    """Answer the probe with the payload."""
    return Evil()


async def answer_in_other_words(*_: object) -> str:
    """Answer the probe with an invalid answer."""
    return '{"memory_mib": "all", "requests": [], "refused": {}}'


def run_evil(event: str, rehearsal: str, topic: str) -> Evil:
    """Attack in every way that a task has besides its answer."""
    del rehearsal
    launch = json.loads(event)["launch"]
    (worker,) = Worker._instances
    for name, message in (
        (topic, Serialize(Evil())),
        (topic, {"index": 0, "launch": launch, "refused": ESCAPE, "permanent": "yes"}),
        (topic, {"index": 1 << 62, "launch": -1, "refused": ESCAPE}),
        (topic, {"index": 0, "launch": launch, "refused": [ESCAPE]}),
        ("print", ESCAPE),
        ("print", {"args": (ESCAPE,), "sep": " ", "end": "", "file": 2, "flush": True}),
        ("warn", {"message": EVIL, "category": EVIL}),
        ("print", Serialize(Evil())),
    ):
        worker.log_event(name, message)
    return Evil()


OF_WORKERS: Mapping[str, Mapping[str, Callable[..., object]]] = {
    "describe": {
        "description": Evil,
        "failure to describe": raise_evil,
        "nested description": lambda: "[" * 9_000,
        "description of others": lambda: '{"address": "tcp://elsewhere:1"}',
    },
    "answer_probe": {"probe": answer_evil, "probe in other words": answer_in_other_words},
    "run_event": {"answers": run_evil, "errors": raise_evil},
}
"""Attacks, by the function of sbench that they replace."""
OF_SCHEDULERS: Mapping[str, tuple[str, Any]] = {
    "greeting": ("identity", ToPickle(Evil())),
    "slots": ("ncores", ToPickle(Evil())),
    "words of a worker": ("broadcast", ToPickle(Evil())),
    "error": ("broadcast", {"status": "uncaught-error", "exception": EVIL, "exception_text": "x"}),
}
"""A scheduler's answers to a request with that name, by attack."""
MESSAGES = (
    {"op": "event", "topic": "print", "event": (0, ESCAPE)},
    {"op": "task-erred", "key": "k", "exception": Serialize(Evil()), "traceback": EVIL},
    {"op": "key-in-memory", "key": "k", "type": EVIL, "workers": ()},
    {"op": "error", "exception": ToPickle(Evil())},
    {"op": "error", "status": "error", "exception": EVIL, "traceback": EVIL},
)
"""Messages that it sends without a request."""


def dask_setup(server: Worker | Scheduler) -> None:
    """Attack from now on; Dask calls it."""
    if isinstance(server, Worker):
        for name, attacks in OF_WORKERS.items():
            setattr(dask_worker, name, instead(getattr(dask_worker, name), attacks))
        worker_state_machine.pickle = EvilTypes  # type: ignore[assignment,attr-defined]
        return
    for name in ("identity", "ncores", "broadcast"):
        answers = {
            attack: reported for attack, (asked, reported) in OF_SCHEDULERS.items() if asked == name
        }
        honest = server.handlers[name]
        say = _say_late if iscoroutinefunction(honest) else _say
        attacks = {attack: partial(say, reported) for attack, reported in answers.items()}
        server.handlers[name] = instead(honest, attacks)

    def send(topic: str, client: str) -> None:
        for message in MESSAGES:
            server.client_comms[client].send(message)

    subscribe = instead(server.subscribe_topic, {"messages": send})
    server.stream_handlers["subscribe-topic"] = subscribe


def _say(reported: object, **_: object) -> object:
    return reported


async def _say_late(reported: object, **_: object) -> object:
    return reported


def instead(
    honest: Callable[..., Any], attacks: Mapping[str, Callable[..., Any]]
) -> Callable[..., Any]:
    """Return the payload, if it is time for the attack, and else the correct answer."""

    def chosen(*arguments: object, **named: object) -> Any:
        return attacks.get(TOLD.read_text(), honest)(*arguments, **named)

    async def awaited(*arguments: object, **named: object) -> Any:
        return await chosen(*arguments, **named)

    return wraps(honest)(awaited if iscoroutinefunction(honest) else chosen)
