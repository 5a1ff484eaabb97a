"""Strategies: tables of probabilities, and their ways in and out of kilt."""
