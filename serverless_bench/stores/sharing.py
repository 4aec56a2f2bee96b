"""Which commands load a store at the same time, and for how long."""

from collections.abc import Hashable, Iterable

Span = tuple[int, int]
"""Begin and end, in nanoseconds of the machine's clock that never steps."""


class StoreLoads:
    """Remembers who loaded the store, as long as somebody can still have shared it with them."""

    def __init__(self) -> None:
        self.since: dict[Hashable, int] = {}
        """Who loads the store at the moment, and since when."""
        self._ended: list[Span] = []

    def begin(self, who: Hashable, now_ns: int) -> None:
        """Note that a command begins to load the store."""
        self.since[who] = now_ns

    def end(self, who: Hashable, now_ns: int) -> tuple[int, int]:
        """Note that a command has ended; return what ``overlap`` says of it and the others."""
        own = self.since.pop(who, now_ns), now_ns
        others = [*self._ended, *((since, now_ns) for since in self.since.values())]
        oldest = min(self.since.values(), default=now_ns)
        self._ended = [span for span in (*self._ended, own) if span[1] > oldest]
        return overlap(own, others)


def overlap(own: Span, others: Iterable[Span]) -> tuple[int, int]:
    """Return how many of the others there were at once within a span, at most, and how long any.

    Parameters
    ----------
    own
        The span.
    others
        Spans that may overlap it and each other.
    """
    within = ((max(own[0], begin), min(own[1], end)) for begin, end in others)
    inside = [(begin, end) for begin, end in within if begin < end]
    changes = [(begin, 1) for begin, _ in inside] + [(end, -1) for _, end in inside]
    count = most = shared_ns = since_ns = 0
    for now_ns, change in sorted(changes):
        if count:
            shared_ns += now_ns - since_ns
        count, since_ns = count + change, now_ns
        most = max(most, count)
    return most, shared_ns
