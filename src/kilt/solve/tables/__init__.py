"""Homes of what players learn: one class of `cfr.Tables` for each way to keep it."""
