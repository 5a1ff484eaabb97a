"""Equilibrium finding on many machines (000, section 3)."""
