"""Lambda's Invoke API from far away: every answer is late."""

import asyncio
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

DELAY_S = 0.1
ALONE_S = 20
"""Time after which no further request will come."""
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


class FarLambda:
    """Delays each request, and then passes it on.

    Parameters
    ----------
    host
        URL of the server; empty to accept every event without work.
    together
        Events are held until this number of them is in flight.
    """

    def __init__(self, host: str = "", together: int = 0) -> None:
        self._host = urlsplit(host)
        self._together = together
        self._under_way = self.most_under_way = 0

    def __enter__(self) -> Self:
        self._reached = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self._host.path}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._server.close()
        # Aborted connections are closed in the next turns of the loop.
        await asyncio.sleep(0)

    def answer(self, request: bytes) -> bytes:
        """Accept an event without work."""
        del request
        return ACCEPTED

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await _message(reader)
                self._under_way += 1
                self.most_under_way = max(self.most_under_way, self._under_way)
                if self._under_way >= self._together:
                    self._reached.set()
                await asyncio.sleep(DELAY_S)
                if b"/invocations " in request:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._reached.wait(), ALONE_S)
                    self._reached.set()
                writer.write(
                    await self._pass_on(request) if self._host.netloc else self.answer(request)
                )
                self._under_way -= 1
        except (asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.transport.abort()

    async def _pass_on(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self._host.hostname, self._host.port)
        try:
            writer.write(request)
            return await _message(reader)
        finally:
            writer.transport.abort()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Return the next request, or response, unchanged."""
    head = await reader.readuntil(b"\r\n\r\n")
    _, _, length = head.lower().partition(b"content-length:")
    return head + await reader.readexactly(int(length.split(b"\r\n")[0] or 0))
