"""Agents that re-solve the current subgame while they play."""
