"""Walks over public trees on a GPU, in three layouts of memory: all boards, two bytes an entry, flop by flop."""
