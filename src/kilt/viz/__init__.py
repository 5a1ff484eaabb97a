"""Figures from data: convergence curves. The plotting package is imported here alone."""
