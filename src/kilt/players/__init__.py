"""Players: everything that can play or be judged, by name or as an object."""
