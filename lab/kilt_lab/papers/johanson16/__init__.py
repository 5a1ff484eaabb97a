"""[Johanson16], by chapter."""
