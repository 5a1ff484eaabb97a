"""The laboratory of kilt: published results measured again (`kilt reproduce`), and benchmarks (`kilt bench`).

It is a package of its own, so that the library stays small. The library never imports it, apart from the command line,
which looks for it.
"""

__version__ = "0.1.0"  # the version of kilt that it belongs to
