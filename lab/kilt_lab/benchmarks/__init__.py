"""Benchmarks: kilt beside its peers, in one run, several times, interleaved."""
