"""Solvers: the CFR family and linear programmes. `registry.ALGORITHMS` lists them; `forms` finds suitable ones."""
