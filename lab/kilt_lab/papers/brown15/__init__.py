"""Experiments about [Brown15], the paper on the poker program Tartanian7."""
