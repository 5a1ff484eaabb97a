"""Evaluate public game trees on a GPU, in three memory layouts: all boards, two bytes per number, and flop by flop."""
