"""Trees: the rules as flat arrays, parent before child, for kernels to walk."""
