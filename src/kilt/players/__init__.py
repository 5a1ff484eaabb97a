"""Players: everything that can play or be evaluated, by name or as an object."""
