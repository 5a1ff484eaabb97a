"""Storage for regrets and average strategies: one class of `cfr.Tables` for each way to store them."""
