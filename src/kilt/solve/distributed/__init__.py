"""Distributed CFR on many machines: a head process solves the first rounds, and workers the later ones [Brown15 §3]."""
