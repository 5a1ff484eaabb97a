"""Distributed equilibrium finding on many machines [Brown15 §3]."""
