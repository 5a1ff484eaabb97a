"""Walks over public trees on a GPU, in three memory layouts: all boards, two bytes per entry, flop by flop."""
