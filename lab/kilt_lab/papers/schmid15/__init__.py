"""[Schmid15]: public abstractions."""
