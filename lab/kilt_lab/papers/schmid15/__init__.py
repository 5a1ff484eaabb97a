"""Experiments about [Schmid15], the paper on classes of boards."""
