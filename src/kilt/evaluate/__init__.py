"""Evaluation of strategies: exploitability, matches, estimators and sanity checks."""
