"""The laboratory of kilt: published results measured again (`kilt reproduce`), and benchmarks (`kilt bench`).

It is a separate package, so that the library stays small. The library does not import it; only the command line looks
for it.
"""

__version__ = "0.1.0"  # the version of kilt that it belongs to
