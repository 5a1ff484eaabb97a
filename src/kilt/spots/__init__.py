"""Spots: subgames of hold'em that are solved by themselves, with all hands."""
