"""Trees: the rules of a game as flat arrays, with parents before children, for walks in kernels."""
