"""Experiments on questions of kilt, without a paper."""
