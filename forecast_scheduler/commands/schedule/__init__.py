"""`schedule`: our own scheduling loops."""
