"""Benchmarks, which measure the speed of kilt and of other programs. The programs take turns, for several rounds."""
