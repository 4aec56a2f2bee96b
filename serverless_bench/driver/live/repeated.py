"""What is done again and again beside a run."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(do: Callable[[], None], seconds: float, *, name: str) -> Iterator[None]:
    """Call something every so many seconds, in a thread of its own, as long as the block lasts."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(seconds):
            do()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
