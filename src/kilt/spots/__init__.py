"""Spots: subgames of hold'em that begin at a public state and are solved for all hands of two ranges."""
