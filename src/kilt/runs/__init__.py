"""Runs: from a game or a configuration to a solver at work, its log and checkpoints, and the strategy it ends with."""
