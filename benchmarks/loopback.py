"""The other end of ``clients.py``: takes uploads, serves keystream, costs little.

    python benchmarks/loopback.py [CERTIFICATE]

Prints its port and serves until its standard input closes. Bodies of uploads are read
and forgotten, bodies of downloads are regenerated from the key, so its disk and its
memory are no part of a measurement. It runs in a process of its own: what it costs is
not charged to the client.
"""

import socket
import ssl
import sys
import threading

from serverless_bench.keys import declared_size
from serverless_bench.keystream import Keystream

BLOCK = 1 << 20


def serve(connection: socket.socket) -> None:
    """Answer requests until the client hangs up."""
    room = memoryview(bytearray(BLOCK))
    unread = b""
    while True:
        while b"\r\n\r\n" not in unread:
            piece = connection.recv(1 << 16)
            if not piece:
                return
            unread += piece
        head, _, unread = unread.partition(b"\r\n\r\n")
        request, *lines = head.decode().split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        method, path, _ = request.split(" ")
        if "expect" in headers:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if method == "PUT":
            unread = drain(connection, headers, unread, room)
            connection.sendall(b'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: 0\r\n\r\n')
        else:
            send(connection, path.partition("?")[0].split("/", 2)[2], room)


def drain(
    connection: socket.socket, headers: dict[str, str], unread: bytes, room: memoryview
) -> bytes:
    """Read a body, and return what came after it."""
    if headers.get("transfer-encoding") == "chunked":
        # Random data may hold the end of a body, once in 2**56 places.
        tail = unread[-7:]
        while tail != b"\r\n0\r\n\r\n":
            count = connection.recv_into(room)
            tail = (tail + bytes(room[max(0, count - 7) : count]))[-7:]
        return b""
    left = int(headers["content-length"]) - len(unread)
    while left > 0:
        left -= connection.recv_into(room[: min(left, BLOCK)])
    return b""


def send(connection: socket.socket, key: str, room: memoryview) -> None:
    """Send the object that belongs at ``key``."""
    size = declared_size(key) or 0
    connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
    keystream = Keystream(key)
    for offset in range(0, size, BLOCK):
        block = room[: size - offset]
        keystream.readinto_at(offset, block)
        connection.sendall(block)


def guarded(connection: socket.socket, context: ssl.SSLContext | None) -> None:
    """Serve one connection, with TLS if asked, and close it."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with context.wrap_socket(connection, server_side=True) if context else connection as line:
        serve(line)


def main() -> None:
    """Accept connections until standard input closes."""
    context = None
    if sys.argv[1:]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1])
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=guarded, args=(connection, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
