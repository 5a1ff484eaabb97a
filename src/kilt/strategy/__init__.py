"""Strategies: tables of probabilities, their files, conversion and post-processing."""
