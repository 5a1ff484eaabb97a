"""Experiments that repeat published results, with a package for each paper."""
