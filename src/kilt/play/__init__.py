"""Play: agents, dealers, matches, and the protocols and logs of other programs."""
