"""Evaluation: how good a strategy is."""
