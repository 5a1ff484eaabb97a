"""Calls of Ray's private functions, which any new version of Ray may change.

Each function says what would be missing without it. `tests/test_private_parts.py` lists all of them.
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
# Ray prints messages about lost machines into the output, whatever `log_to_driver` is.
driver.print_to_stdstream = lambda data, ignore_prefix: logging.getLogger(__name__).info("%s", data["lines"])


def start(threads: int, folder: Path, *, store: int, inline: int) -> None:
    """Start a Ray instance for this process only, unreachable from other machines.

    Parameters
    ----------
    threads : int
        Number of processes for plain functions.
    folder : Path
        Folder of Ray's files and sockets, which Ray makes accessible to all users.
    store : int
        Bytes of shared memory.
    inline : int
        Largest size in bytes of arguments and results that are sent without shared memory.
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
    """Keep processes that Ray starts in this context on the loopback device.

    Ray reads its option for that only at import.
    """
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def resolve(address: str) -> str | None:
    """Return the HOST:PORT of a Ray cluster, where `auto` means the cluster on this machine.

    For `auto`, it is None if no cluster runs on this machine. Raises ValueError for any other text. Without this
    function, kilt could not support `auto`.
    """
    try:
        found: str | None = services.canonicalize_bootstrap_address(address)
    except ConnectionError:
        return None
    return found


def show_token() -> None:
    """Let Ray authenticate with the user's token when it connects to a cluster, as `ray start` does.

    Without this call, Ray would connect without the token.
    """
    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
