"""Experiments that answer questions of kilt's developers instead of repeating a paper."""
