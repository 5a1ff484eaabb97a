"""Send and receive lines of text over a network connection, for the ACPC protocol."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from kilt.errors import PlayError
from kilt.play.acpc import COMMENTS

LONGEST = 1 << 16  # largest number of bytes of a line


class Lines:
    """A network connection that sends and receives lines of text.

    Error messages call the other end `who`.
    """

    def __init__(self, connection: socket.socket, who: str) -> None:
        self.who = who
        self._connection = connection
        self._received = bytearray()
        self._searched = 0  # bytes already searched for a line end
        with suppress(OSError):  # without this option, sockets are only slower
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, line: str, seconds: float | None = None) -> None:
        """Send a line.

        Raises PlayError after the time limit, or if the connection is closed.
        """
        try:
            self._connection.settimeout(seconds)
            self._connection.sendall(f"{line}\r\n".encode())
        except TimeoutError:
            raise PlayError(f"{self.who} did not read what it was sent within {seconds:g} seconds") from None
        except OSError as error:
            raise PlayError(f"{self.who} hung up ({error.strerror or error})") from None

    def receive(self, deadline: float | None = None) -> str | None:
        """Return the next line that is not a comment, or None if the connection is closed.

        Raises TimeoutError at the deadline, in the time of `time.monotonic`, and PlayError if a line is too long or
        incomplete.
        """
        while True:
            line = self._next_line()
            if line is None:
                if not self._fill(deadline):
                    return None
            elif not line.startswith(COMMENTS):
                return line

    def _next_line(self) -> str | None:
        end = self._received.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._received)
            if self._searched > LONGEST:
                raise PlayError(f"{self.who} sent a line of more than {LONGEST} bytes; check that it speaks ACPC")
            return None
        line = self._received[:end].removesuffix(b"\r").decode(errors="replace")
        del self._received[: end + 1]
        self._searched = 0
        return line

    def _fill(self, deadline: float | None) -> bool:
        """Wait for more bytes. Returns False if the other end has closed the connection."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        try:
            self._connection.settimeout(left)
            data = self._connection.recv(LONGEST)
        except TimeoutError:
            raise
        except OSError:  # a reset also ends the connection
            data = b""
        if not data and self._received:
            raise PlayError(f"{self.who} hung up in the middle of a line: {bytes(self._received[:80])!r}")
        self._received += data
        return bool(data)
