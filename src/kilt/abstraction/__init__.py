"""Abstractions: hands to buckets, boards to classes, and bets to menus."""
