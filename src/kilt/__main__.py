"""``python -m kilt`` runs the command ``kilt``."""

from kilt.cli import main

main()
