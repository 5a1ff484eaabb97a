"""Players: everything that can play or be evaluated, given by name or as an object."""
