"""Experiments about [Johanson16], with a module for each chapter of the thesis."""
