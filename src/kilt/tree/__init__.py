"""Trees: the rules of a game as flat arrays of nodes, with parents before children, for compiled code."""
