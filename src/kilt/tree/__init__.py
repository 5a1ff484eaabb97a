"""Trees: the rules of a game as flat arrays, in which compiled code visits parents before children."""
