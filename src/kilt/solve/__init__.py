"""Solving: the CFR family and linear programmes. `registry.ALGORITHMS` is the menu; `forms` finds what fits."""
