"""Which requests of a witness are of a run: several runs may share one file.

By bucket, key and time; and by worker, where the user agent says who asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.audit.claims import Claims
from serverless_bench.audit.witness import Seen

MARGIN_NS: Final = 2_000_000
"""What two clocks of one machine may be apart."""


@dataclass(slots=True)
class Scope:
    """The requests of one run; those of others are left out."""

    data: list[Seen] = field(default_factory=list)
    """Of its functions, while it ran."""
    gate: list[Seen] = field(default_factory=list)
    control: list[Seen] = field(default_factory=list)
    """Claims and records, and looks for them."""
    probes: list[Seen] = field(default_factory=list)
    """Looks of the driver at the store's clock; of another driver's at the same time, too."""
    unknown: list[Seen] = field(default_factory=list)
    """On its own keys, while it ran, by workers that left no record."""
    strange: list[Seen] = field(default_factory=list)
    """Of its functions, on keys that nobody asked for."""
    nameless: int = 0
    """Of ``data``, those whose user agent says nothing."""


def scope(claims: Claims, seen: Sequence[Seen]) -> Scope:
    """Return the requests of a run."""
    return _Sorter(claims).sort(seen)


class _Sorter:
    def __init__(self, claims: Claims) -> None:
        target, control = claims.job["target"], claims.job.get("control")
        self.claims = claims
        self.bucket, self.prefix = target["bucket"], target["prefix"]
        self.gate = f"{target['prefix']}{claims.run_id}/gate/"
        self.gated = claims.job.get("gate") is not None
        self.control = None if control is None else f"{control['prefix']}{claims.run_id}/"
        self.control_bucket = None if control is None else control["bucket"]
        self.begin_ns = claims.created_ns
        ends = [function.end_ns for function in claims.functions]
        self.end_ns = max([claims.last_ns, *ends]) + MARGIN_NS
        received = [probe[1] for probe in claims.probes]
        self.probed_ns = max([self.end_ns, *received])
        self.workers = {function.worker for function in claims.functions}
        self.keys = frozenset(claims.keys)
        arrays = claims.load.get("array") is not None
        self.arrays = tuple(f"{key}/" for key in claims.keys) if arrays else ()
        self.gone: set[str] = set()
        self.found = Scope()

    def sort(self, seen: Sequence[Seen]) -> Scope:
        for one in seen:
            self._take(one)
        return self.found

    def _take(self, one: Seen) -> None:
        found = self.found
        if one.bucket == self.control_bucket and self._is_control(one):
            found.control.append(one)
        elif one.bucket == self.bucket:
            if one.operation == "head_bucket":
                if self.begin_ns <= one.head_ns <= self.probed_ns:
                    found.probes.append(one)
            elif self._is_of_gate(one):
                self._take_gate(one)
            elif self.begin_ns <= one.head_ns <= self.end_ns:
                self._take_data(one)

    def _take_gate(self, one: Seen) -> None:
        # The driver deletes what the gate left; who looks for it after that is another one.
        if one.key not in self.gone:
            self.found.gate.append(one)
        if one.operation in {"delete", "list_uploads"}:
            self.gone.add(one.key)

    def _take_data(self, one: Seen) -> None:
        found, mine = self.found, one.worker in self.workers
        if self._is_own(one) or self._is_given(one):
            if mine or one.worker is None:
                found.data.append(one)
                found.nameless += one.worker is None
            elif self._is_own(one):
                found.unknown.append(one)
        elif mine and one.operation == "list_objects":
            found.data.append(one)
        elif mine and at_work(self.claims, one):
            found.strange.append(one)

    def _is_own(self, one: Seen) -> bool:
        ledger = self.claims.ledger
        return one.key in ledger or any(key in ledger for key in one.keys)

    def _is_given(self, one: Seen) -> bool:
        return one.key in self.keys or (bool(self.arrays) and one.key.startswith(self.arrays))

    def _is_control(self, one: Seen) -> bool:
        return self.control is not None and one.key.startswith(self.control)

    def _is_of_gate(self, one: Seen) -> bool:
        if one.operation != "list_uploads":
            return one.key.startswith(self.gate)
        # It is how the driver begins to delete what the gate left.
        ends = self.end_ns - 2 * MARGIN_NS <= one.head_ns and one.worker is None
        return self.gated and one.key == self.prefix and ends


def at_work(claims: Claims, one: Seen) -> bool:
    """Tell whether a function that left a record was at work; a process may do more than that."""
    return any(
        function.worker == one.worker and function.start_ns <= one.head_ns <= function.end_ns
        for function in claims.functions
    )
