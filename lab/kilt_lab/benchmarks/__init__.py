"""Benchmarks: kilt and its peers in one run, several times, interleaved."""
