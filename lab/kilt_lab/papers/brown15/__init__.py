"""[Brown15]: Tartanian7."""
