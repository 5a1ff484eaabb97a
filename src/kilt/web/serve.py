"""Start the web server, print the address of its page, and open a browser."""

from __future__ import annotations

import signal
import socket
import ssl
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EADDRNOTAVAIL
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe

import uvicorn

from kilt.errors import PlayError, about_file, quoted
from kilt.web import PER_ADDRESS
from kilt.web.connections import Listener, MonitoredRequests, limit_logs
from kilt.web.library import Library
from kilt.web.runner import Runner
from kilt.web.server import LOCAL, Guard, State, create_app


def serve(
    folders: Sequence[Path],
    host: str,
    port: int,
    *,
    control: Path | None = None,
    tls: tuple[Path, Path] | None = None,
    connections: int = PER_ADDRESS,
    browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Run the web server until Ctrl-C, SIGTERM or SIGHUP, then stop the runs of its page.

    Parameters
    ----------
    folders : sequence of Path
        Runs, exported agents, or folders of these.
    host : str
        The address to listen on. If other machines can reach it, requests need a token.
    port : int
        The port; 0 is any free one.
    control : Path, optional
        Folder for the runs that the page starts. Without it, the page neither starts nor stops runs.
    tls : (Path, Path), optional
        Files in PEM format: the certificate with its chain, and its private key. Without them, the page is plain HTTP.
    connections : int
        Largest number of connections from one address.
    browser : bool
        Whether to open the page in a browser.
    announce : callable
        Called with lines for the user, such as the address of the page.

    Raises
    ------
    KiltError
        If a folder, the address or a file of `tls` cannot be used, or another server controls the runs.
    """
    if tls:
        _require_certificate(*tls)
    if control is not None and all(control.resolve() != folder.resolve() for folder in folders):
        control.mkdir(parents=True, exist_ok=True)
        folders = [*folders, control]
    library = Library(folders)
    with _listening(host, port, connections) as listener:
        state = State(library, Runner(control.resolve()) if control else None)
        try:
            with _ending_in_order():
                _serve(listener, state, host, tls, browser, announce)
        finally:
            state.tables.close()
            if state.runner:
                state.runner.close(announce)


def _serve(
    listener: Listener,
    state: State,
    host: str,
    tls: tuple[Path, Path] | None,
    browser: bool,
    announce: Callable[[str], None],
) -> None:
    """Answer requests until a signal ends the server."""
    address, port = listener.getsockname()[:2]
    local, own = ip_address(address).is_loopback, socket.gethostname()
    token = "" if local else token_urlsafe(24)
    names = {*LOCAL, host, _encoded(host)} | (set() if local else {f"[{host}]", own})
    app = create_app(state, Guard(frozenset(name.lower() for name in names), token))
    shown = own if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    page = f"{'https' if tls else 'http'}://{shown}:{port}/" + (f"?token={token}" if token else "")
    announce(f"the page is at {page} (Ctrl-C ends it)")
    if browser:
        webbrowser.open(page)
    certificate, key = tls or (None, None)
    settings = uvicorn.Config(
        MonitoredRequests(app, listener),
        http="h11",
        loop="asyncio",  # other loops bypass the listener
        ws="none",
        proxy_headers=False,  # the listener needs the clients' real addresses
        log_level="warning",
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=1,
        timeout_notify=1,
        callback_notify=listener.sweep,
    )
    limit_logs()
    uvicorn.Server(settings).run(sockets=[listener])


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """End the context at SIGTERM and SIGHUP as at Ctrl-C, so that the code after it runs."""

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def hung_up(number: int, frame: object) -> None:
        signal.raise_signal(signal.SIGTERM)  # which uvicorn handles

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hung_up)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _encoded(host: str) -> str:
    """Return a host name as browsers send it, with non-ASCII letters encoded."""
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _listening(host: str, port: int, connections: int) -> Listener:
    """Return a listening socket. Raises PlayError if the address cannot be used."""
    if not host:
        raise PlayError("an empty host would listen on all networks: use an address, such as 127.0.0.1")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, ValueError):  # an unknown or invalid name
        raise PlayError(
            f"`host` {quoted(host)} is no address of this machine: give one, such as 127.0.0.1, or a name that has one"
        ) from None
    listener = Listener(family, connections)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        remedy = (
            "give as `host` an address of this machine" if error.errno == EADDRNOTAVAIL else "choose another `port`"
        )
        reason = (error.strerror or str(error)).lower()
        raise PlayError(f"nothing can listen at {host}:{port} ({reason}): {remedy}") from None
    return listener


def _require_certificate(certificate: Path, key: Path) -> None:
    """Raise PlayError if a certificate and its key cannot be used for TLS."""

    def password() -> str:
        raise PlayError(f"{key} is encrypted: use a private key without a passphrase")

    try:
        for file in (certificate, key):
            file.read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        raise PlayError(
            f"`tls` {certificate} {key}: {(error.reason or 'not in PEM format').replace('_', ' ').lower()}; "
            "give a certificate and its private key in PEM format"
        ) from None
    except OSError as error:
        raise PlayError(f"`tls`: {about_file(error)}") from None
