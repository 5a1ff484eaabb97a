"""Parts of Ray that it does not promise to keep; what kilt uses of them is here, and `ray_engine` has the rest.

Each function says what would be lost without it. `tests/test_private_parts.py` names all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray
from ray._private import ray_constants, services
from ray._private import worker as driver
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available

logging.getLogger("ray").setLevel(logging.ERROR)
# Ray prints what it has to say about machines that it loses, whatever `log_to_driver` is: among our figures.
driver.print_to_stdstream = lambda data, ignore_prefix: logging.getLogger(__name__).info("%s", data["lines"])


def start(threads: int, folder: Path, *, store: int, inline: int) -> None:
    """Start a Ray of this process alone, which nobody on another machine reaches.

    Parameters
    ----------
    threads : int
        Processes for plain functions.
    folder : Path
        Where Ray keeps its files and sockets. Ray opens this folder to everybody.
    store : int
        Bytes of shared memory.
    inline : int
        Bytes that travel with a question or an answer, without shared memory.
    """
    with _loopback():
        ray.init(
            address="local",
            num_cpus=threads,
            object_store_memory=store,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            _temp_dir=str(folder),
            _system_config={"max_direct_call_object_size": inline},
            log_to_driver=False,
            logging_level=logging.ERROR,
        )


@contextmanager
def _loopback() -> Iterator[None]:
    """Keep the processes that Ray starts on the loopback device. The option for this is read once, at the import."""
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def resolve(address: str) -> str | None:
    """HOST:PORT of a cluster; of `auto`, that of the one on this machine. None if there is none; ValueError otherwise.

    Without it, `auto` would not be an address.
    """
    try:
        found: str | None = services.canonicalize_bootstrap_address(address)
    except ConnectionError:
        return None
    return found


def show_token() -> None:
    """Show the token to a cluster if this user has one, as `ray start` does. Ray would connect without it."""
    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
