"""Start the server of the page, say where it is, and open a browser."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from kilt.errors import PlayError
from kilt.web.library import Library
from kilt.web.runner import Runner
from kilt.web.server import LOCAL, Guard, State, create_app


def serve(
    folders: Sequence[Path],
    host: str,
    port: int,
    *,
    control: Path | None = None,
    browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    folders : sequence of Path
        Runs, exported agents, or folders that hold some.
    host : str
        The address to listen at. One that other machines reach makes a token necessary.
    port : int
        0 is any free one.
    control : Path, optional
        Where runs go that the page starts; left out: it starts and stops none.
    browser : bool
        Whether to open the page.
    announce : callable
        Hears where the page is.
    """
    if control is not None and all(control.resolve() != folder.resolve() for folder in folders):
        control.mkdir(parents=True, exist_ok=True)
        folders = [*folders, control]
    state = State(Library(folders), Runner(control.resolve()) if control else None)
    with _listening(host, port) as line:
        token = "" if _is_local(host) else secrets.token_urlsafe(24)
        names = frozenset({*LOCAL, host, f"[{host}]", socket.gethostname()} if token else {*LOCAL, host})
        app = create_app(state, Guard(names, token))
        seen = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        said = f"http://{seen}:{line.getsockname()[1]}/"
        if token:
            said += f"?token={token}"
        announce(f"the page is at {said} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(said)
        settings = uvicorn.Config(app, log_level="warning", limit_concurrency=400, timeout_graceful_shutdown=1)
        try:
            uvicorn.Server(settings).run(sockets=[line])
        except KeyboardInterrupt:
            pass
        finally:
            state.tables.close()
            if state.runner:
                state.runner.close()


def _is_local(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    if not host:
        raise PlayError("an empty host would listen everywhere: name the address, such as 127.0.0.1")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        line = socket.socket(family, socket.SOCK_STREAM)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind((host, port))
        line.listen(256)
    except OSError as error:
        raise PlayError(
            f"nothing can listen at {host}:{port} ({(error.strerror or str(error)).lower()}): choose another --port"
        ) from None
    return line
