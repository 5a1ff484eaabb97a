"""``python -m kilt`` is the command ``kilt``."""

from kilt.cli import main

main()
