"""The page in the browser: play against agents, look at strategies and buckets, watch runs."""
