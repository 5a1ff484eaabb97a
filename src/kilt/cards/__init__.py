"""Cards: their names and numbers, ranges of hands, hand strength, suit isomorphism and equity."""
