"""Runs: solve a game or a configuration with checkpoints and a log, and store the resulting strategy."""
