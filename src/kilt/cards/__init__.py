"""Cards: names and ranges, strength, suit isomorphism, equity."""
