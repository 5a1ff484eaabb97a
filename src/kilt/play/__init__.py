"""Play: agents, dealers and matches, also over the network and against Slumbot, and the formats of hand logs."""
