"""Experiments, by paper."""
