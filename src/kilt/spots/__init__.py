"""Spots: subgames of hold'em, from a public state on, which are solved with all hands."""
