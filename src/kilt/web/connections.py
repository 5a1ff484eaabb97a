"""Limits for clients of the web server: connections, waiting times, and log messages.

Browsers keep some connections open between requests, and so does an attacker who wants to exhaust the server. A
connection without a request is closed after `WAITING` seconds. It is closed earlier if a new connection needs its
place: when an address or the server reaches its limit, the connection that has waited longest is closed. A connection
whose request is being answered is never closed to make room. Limits apply from the moment a connection is accepted,
before TLS and HTTP begin.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress
from threading import Lock
from time import monotonic, sleep
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_CONNECTIONS = 400  # largest number of connections
WAITING = 15.0  # seconds that a connection may be open without a request, and that a request may take to arrive
SENDING = 30.0  # seconds within which a client must read some data
ANSWERED = 60.0  # seconds after which the system drops a client that acknowledges no data
AT_ONCE = 32  # connections that are accepted in a row before the server does other work
MIN_CONNECTIONS = 8  # connections that are always allowed, however few files a process may open
PAUSE = 0.05  # seconds to wait if the system cannot open another connection
LOGGED, PERIOD = 10, 60.0  # number of messages that a logger prints per period in seconds

logger = logging.getLogger("kilt.web")


class MessageLimit(logging.Filter):
    """A log filter that passes a limited number of messages per period and counts the rest.

    The limit is `LOGGED`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._began, self._passed, self._dropped = -PERIOD, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to print a message.

        The first message of a period also reports how many were suppressed before it.
        """
        with self._lock:
            now = monotonic()
            if now - self._began >= PERIOD:
                if self._dropped:
                    record.msg = f"{record.getMessage()} ({self._dropped:,} earlier messages were suppressed)"
                    record.args = ()
                self._began, self._passed, self._dropped = now, 0, 0
            self._passed += 1
            self._dropped += self._passed > LOGGED
            return self._passed <= LOGGED


def limit_logs() -> None:
    """Limit the server's log messages, so that clients cannot flood the log."""
    for name in (logger.name, "uvicorn.error", "asyncio"):
        own = logging.getLogger(name)
        if not any(isinstance(each, MessageLimit) for each in own.filters):
            own.addFilter(MessageLimit())


class Connection(socket.socket):
    """An open connection to a client, which removes itself from its listener when closed."""

    listener: Listener
    client: tuple[str, int]
    since: float = 0.0  # when it began to wait for a request, as returned by `monotonic`
    busy: int = 0  # number of requests being answered

    def close(self) -> None:
        """Close the connection."""
        self.listener.leave(self)
        super().close()

    def hang_up(self) -> None:
        """Shut the connection down, so that its reader closes it."""
        with suppress(OSError):  # the other end may have closed it
            self.shutdown(socket.SHUT_RDWR)


class Listener(socket.socket):
    """A listening socket that limits connections in total and per address.

    Parameters
    ----------
    family : socket.AddressFamily
        Address family of the socket.
    per_address : int
        Largest number of connections from one address.
    """

    def __init__(self, family: int, per_address: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.per_address, self.most = per_address, min(MAX_CONNECTIONS, max(MIN_CONNECTIONS, _open_files() // 2))
        self._open: dict[tuple[str, int], Connection] = {}
        self._accepted = 0  # connections accepted since the last pause
        # a spare file, closed when there is no other way to accept a connection and refuse it
        self._spare = os.open(os.devnull, os.O_RDONLY)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection, if the limits allow it.

        Raises BlockingIOError if none waits, and after every `AT_ONCE`.
        """
        while self._accepted < AT_ONCE:
            self._accepted += 1
            try:
                accepted, address = super().accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                break
            except OSError as error:  # too many open files, or too little memory
                logger.warning("a connection was refused: %s", (error.strerror or str(error)).lower())
                if not self._refused():
                    sleep(PAUSE)
                break
            if connection := self._admitted(accepted, (str(address[0]), int(address[1]))):
                return connection, address
        self._accepted = 0
        raise BlockingIOError

    def close(self) -> None:
        """Stop listening."""
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        super().close()

    def leave(self, connection: Connection) -> None:
        """Remove a closed connection from the list.

        A newer connection with the same address and port stays.
        """
        if self._open.get(connection.client) is connection:
            del self._open[connection.client]

    def of(self, client: Any) -> Connection | None:
        """Return the open connection of a client, given its address and port."""
        return self._open.get(tuple(client[:2])) if client else None

    async def sweep(self) -> None:
        """Close all connections that have waited too long for a request."""
        now = monotonic()
        for connection in list(self._open.values()):
            if not connection.busy and now - connection.since > WAITING:
                connection.hang_up()

    def _admitted(self, accepted: socket.socket, client: tuple[str, int]) -> Connection | None:
        """Admit a connection, if necessary by closing another one. Returns None if no other can be closed."""
        same = [other for other in self._open.values() if other.client[0] == client[0]]
        for crowd, most in ((same, self.per_address), (list(self._open.values()), self.most)):
            if len(crowd) >= most and not self._make_room(crowd):
                logger.warning("a connection from %s was refused: %d are being answered", client[0], len(crowd))
                accepted.close()
                return None
        connection = Connection(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        connection.listener, connection.client, connection.since = self, client, monotonic()
        self._open[client] = connection
        _watch(connection)
        return connection

    def _make_room(self, crowd: list[Connection]) -> bool:
        """Close the connection that has waited longest for a request. Returns False if all are answering requests."""
        waiting = [other for other in crowd if not other.busy]
        if not waiting:
            return False
        longest = min(waiting, key=lambda other: other.since)
        logger.warning("a connection from %s without a request was closed to make room", longest.client[0])
        self.leave(longest)
        longest.hang_up()
        return True

    def _refused(self) -> bool:
        """Accept the next connection and close it at once. Returns False if that fails."""
        if self._spare < 0:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)
            return False
        os.close(self._spare)
        self._spare = -1
        try:
            super().accept()[0].close()
            self._spare = os.open(os.devnull, os.O_RDONLY)
        except OSError:
            return False
        return True


class MonitoredRequests:
    """An ASGI wrapper that marks connections as busy during requests, and drops slow clients."""

    def __init__(self, app: ASGIApp, listener: Listener) -> None:
        self.app, self.listener = app, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        connection = self.listener.of(scope.get("client"))
        if connection is None:
            await self.app(scope, receive, send)
            return
        deadline, whole = asyncio.get_running_loop().time() + WAITING, False

        async def arrive() -> Message:
            nonlocal whole
            async with asyncio.timeout_at(None if whole else deadline):
                message = await receive()
            whole = not message.get("more_body", False)
            return message

        async def leave(message: Message) -> None:
            try:
                async with asyncio.timeout(SENDING):
                    await send(message)
            except TimeoutError:
                connection.hang_up()

        connection.busy += 1
        try:
            await self.app(scope, arrive, leave)
        finally:
            connection.busy -= 1
            connection.since = monotonic()


def _watch(connection: Connection) -> None:
    """Let the operating system close a connection whose other end has disappeared."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, int(ANSWERED))
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * ANSWERED))


def _open_files() -> int:
    """Return the number of files that this process may open."""
    try:
        import resource
    except ImportError:  # Windows
        return 2 * MAX_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else soft
