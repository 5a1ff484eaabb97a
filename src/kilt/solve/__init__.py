"""Solvers: CFR and its variants, and linear programmes.

`registry.ALGORITHMS` lists them; `forms` finds suitable ones.
"""
