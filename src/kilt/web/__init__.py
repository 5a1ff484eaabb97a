"""The page in the browser: play against agents, look at strategies and buckets, watch runs."""

PER_ADDRESS = 128  # connections by default: a browser needs 6 or 7, and a hundred people may share an address
