"""Agents that solve the subgame they are in while they play."""
