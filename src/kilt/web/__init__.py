"""The page in the browser: play against agents, examine strategies and buckets, and watch runs."""

PER_ADDRESS = 128  # default limit of connections: a browser needs 6 or 7, and many people may share an address
