"""Questions of kilt's own."""
