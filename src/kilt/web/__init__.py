"""The web page of kilt, for playing against agents, examining strategies and card buckets, and watching runs."""

PER_ADDRESS = 128  # default limit of connections: a browser needs 6 or 7, and many people may share an address
