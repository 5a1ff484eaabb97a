"""Storage for the regrets and average strategies of CFR: in memory, in two bytes per number, on disk, or on a GPU."""
