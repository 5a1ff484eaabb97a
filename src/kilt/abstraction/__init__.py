"""Abstractions make a game smaller: hands become buckets, boards become classes, and bet sizes become a menu."""
