"""``kilt setup``: compile the kernels of frequent commands once after installation."""

from __future__ import annotations

from typing import Annotated

from kilt.cli import options
from kilt.cli.show import AsJson, print_json, say, ticking


def setup(
    workers: Annotated[int | None, options.WORKERS] = None,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels of frequent commands ahead of time, in several processes.

    This is optional: otherwise each command compiles its kernels at first use, which takes up to half a minute. A
    second call compiles only what has changed.
    """
    from kilt.rehearsals import setup as compile_kernels

    with ticking() as tick:
        done = compile_kernels(workers=workers, tick=lambda name, share: tick("compiling kernels", share))
    if as_json:
        print_json(done._asdict())
    elif done.workers:
        work = f"{done.compiling:.1f} s of compiling, {done.workers} processes"
        say(f"compiled everything in {done.seconds:.1f} s: {work}")
    else:
        say(f"everything is compiled already: looked in {done.seconds:.1f} s")
